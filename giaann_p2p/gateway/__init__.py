"""The gateway: one resident process that serves a swarm or a brain over HTTP.

Programs use OpenAI's interface below `/v1`, people the page at `/`, which uses `/api`. `rules`,
`stops`, `openai_requests` and `usage` decide without sockets; `guard` and `connection` bound what a
stranger's browser or a broken client may do; a `backend` answers. `app` puts it together, and
`server` runs it with uvicorn.
"""
