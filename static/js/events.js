// Server-sent events from a POST, which EventSource cannot send.

// Yields {name, data} for each event of the body; data is parsed JSON. Ends when the server ends it, throws when it is cut.
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (waiting + value).split("\n\n");
    waiting = blocks.pop();
    for (const block of blocks) yield parsed(block);
  }
}

function parsed(block) {
  const field = (name) =>
    block
      .split("\n")
      .filter((line) => line.startsWith(`${name}: `))
      .map((line) => line.slice(name.length + 2))
      .join("\n");
  return { name: field("event"), data: JSON.parse(field("data")) };
}
