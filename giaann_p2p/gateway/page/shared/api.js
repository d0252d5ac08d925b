// Requests to the gateway. Whatever goes wrong becomes an Error whose message is a sentence.
import { eventsOf } from "./sse.js";

const UNREACHABLE = "The gateway cannot be reached. Is `giaann serve` still running?";

class Refused extends Error {
  constructor(message, status, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

async function answered(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(UNREACHABLE, 0, "unreachable");
  }
  if (response.ok) return response;
  let told = {};
  try {
    told = (await response.json()).error ?? {};
  } catch {
    // Not the gateway's JSON: the status has to do.
  }
  const message = told.message ?? `The gateway answered with status ${response.status}.`;
  throw new Refused(message, response.status, told.code ?? "");
}

export async function getJson(path, signal) {
  return (await answered(path, { signal })).json();
}

/** Sends JSON, and yields the events of the answer; an event `error` is thrown. */
export const post = (path, body, signal) =>
  streamed(path, "application/json", JSON.stringify(body), signal);

/** Sends a text as it is, which JSON would make longer, and yields the events of the answer. */
export const postText = (path, text, signal) =>
  streamed(path, "text/plain; charset=utf-8", text, signal);

async function* streamed(path, type, body, signal) {
  const options = { method: "POST", headers: { "content-type": type }, body, signal };
  const response = await answered(path, options);
  let ended = false;
  try {
    for await (const event of eventsOf(response)) {
      if (event.name === "error") throw new Refused(event.data.message, 200, event.data.code);
      ended = event.name === "done";
      yield event;
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof Refused) throw error;
    throw new Refused("The connection to the gateway broke off.", 0, "broken");
  }
  if (!ended) throw new Refused("The gateway ended before the answer did.", 0, "broken");
}
