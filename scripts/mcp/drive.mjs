// The TypeScript SDKs drive toolgate: drive.mjs LINE ERA TOOLGATE WORKSPACE [URL].
// LINE is `old` (one package) or `new` (split packages); ERA is `legacy` or a version of the protocol.
import assert from 'node:assert';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const [line, era, toolgate, workspace, url] = process.argv.slice(2);
const capabilities = { elicitation: { form: {} } };

async function sdk() {
  if (line === 'old') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
    const client = new Client({ name: 'peer', version: '1' }, { capabilities });
    return { client, StdioClientTransport, StreamableHTTPClientTransport, elicitation: ElicitRequestSchema };
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  const mode = era === 'legacy' ? 'legacy' : { pin: era };
  const client = new Client({ name: 'peer', version: '2' }, { capabilities, versionNegotiation: { mode } });
  return { client, StdioClientTransport, StreamableHTTPClientTransport, elicitation: 'elicitation/create' };
}

const { client, StdioClientTransport, StreamableHTTPClientTransport, elicitation } = await sdk();
const call = (name, args, options) =>
  line === 'old' ? client.callTool({ name, arguments: args }, undefined, options) : client.callTool({ name, arguments: args }, options);
let asked = 0;
client.setRequestHandler(elicitation, async (request) => {
  asked += 1;
  assert.match(request.params.message, /\/usr[^]*risk  /);
  return { action: 'accept', content: { decision: asked === 1 ? 'no' : 'once' } };
});
const { PATH, HOME, TOOLGATE_STATE_DIR, TOOLGATE_MCP_TOKEN, SERVE, CANCELLED } = process.env;
await client.connect(url
  ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${TOOLGATE_MCP_TOKEN}` } } })
  : new StdioClientTransport({ command: toolgate, args: SERVE.split('\n'), env: { PATH, HOME, TOOLGATE_STATE_DIR } }));

const { tools } = await client.listTools();
const names = tools.map((tool) => tool.name);
assert.deepEqual(names, [...names].sort());
assert(names.includes('Read') && names.includes('mcp__slow__wait'));

const notes = { file_path: `${workspace}/notes.txt` };
assert.match((await call('Read', notes)).content[0].text, /remember the milk/);
assert.equal((await call('Read', { file_path: `${workspace}/secret.txt` })).isError, true);
await assert.rejects(call('nope', {}), (error) => error.code === -32602);

const outside = { path: '/usr' };
assert.equal((await call('ls', outside)).isError, true);
assert.notEqual((await call('ls', outside)).isError, true);
assert.equal(asked, 2);

const told = [];
const done = await call('mcp__slow__wait', { steps: 4 }, { onprogress: (progress) => told.push(progress) });
assert.equal(done.content[0].text, '4 steps done');
// What is said in quick succession is told together, and this SDK drops a report that arrives together with the result.
const said = told.flatMap((progress) => progress.message.split('\n'));
assert.deepEqual(said, ['step 1', 'step 2', 'step 3', 'step 4'].slice(0, said.length));
assert(told.length > 1);
told.reduce((last, progress) => (assert(progress.progress > last), progress.progress), 0);

const count = () => readFileSync(CANCELLED, 'utf8').split('\n').length;
const before = count();
const stop = new AbortController();
await assert.rejects(call('mcp__slow__wait', { steps: 0 }, { onprogress: () => stop.abort(), signal: stop.signal }));
while (count() === before) await pause(20);
assert.notEqual((await call('Read', notes)).isError, true);
await client.close();
