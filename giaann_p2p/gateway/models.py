"""`GET /v1/models`: the one model that is served."""

from starlette.requests import Request
from starlette.responses import Response

from giaann_p2p.gateway import openai_replies as replies
from giaann_p2p.gateway.context import Context
from giaann_p2p.gateway.openai_requests import check_model
from giaann_p2p.gateway.replying import as_json


class Models:
    """The handlers that name the model; `created` is when the gateway began, in seconds."""

    def __init__(self, created: int) -> None:
        self._created = created

    async def all(self, context: Context, request: Request) -> Response:
        """Return the list of models."""
        return as_json(replies.Models(data=[self._model(context)]))

    async def one(self, context: Context, request: Request) -> Response:
        """Return one model; NoModel if it is not served."""
        check_model(request.path_params["model"], context.facts.model)
        return as_json(self._model(context))

    def _model(self, context: Context) -> replies.Model:
        return replies.Model(id=context.facts.model, created=self._created)
