"""The gateway: one resident process that serves a swarm or a brain over HTTP.

Programs use OpenAI's interface below `/v1`, people the page at `/`, which uses `/api`. `rules`,
`stops` and `openai_requests` decide without sockets; `guard` and `connection` limit what a hostile
page or a broken client can do; a `backend` answers. `app` puts them together, and `server` runs the
result with uvicorn.
"""
