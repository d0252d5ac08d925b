// Server-sent events in the answer to a POST, which EventSource cannot send.

/** Yields the events of a response, as `{name, data}`. */
export async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (waiting + value).split("\n\n");
      waiting = blocks.pop();
      for (const block of blocks) {
        const event = parsed(block);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // it may have failed already, and the caller knows
  }
}

function parsed(block) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  return data.length ? { name, data: JSON.parse(data.join("\n")) } : null;
}
