import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mcpRequest } from '../../src/http/mcp-request.ts'

const call = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'get_weather' }
const base64 = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`

for (const [headers, expected] of [
  [call, { method: 'tools/call', name: 'get_weather' }],
  [{ ...call, 'mcp-method': 'tools/list', 'mcp-name': undefined }, { method: 'tools/list' }],
  [{ ...call, 'mcp-method': 'tools/list', 'mcp-name': '' }, { method: 'tools/list' }],
  [
    { ...call, 'mcp-method': 'subscriptions/listen' },
    { method: 'subscriptions/listen', name: 'get_weather' },
  ],
  [
    { ...call, 'mcp-name': 'get the weather' },
    { method: 'tools/call', name: 'get the weather' },
  ],
  [
    { ...call, 'mcp-name': 'a'.repeat(1024) },
    { method: 'tools/call', name: 'a'.repeat(1024) },
  ],
  [
    { ...call, 'mcp-name': base64('wetter_für, 世界') },
    { method: 'tools/call', name: 'wetter_für, 世界' },
  ],
  [
    { ...call, 'mcp-name': base64('delete_user') },
    { method: 'tools/call', name: 'delete_user' },
  ],
  [
    { ...call, 'mcp-name': base64('=?base64?eA==?=') },
    { method: 'tools/call', name: '=?base64?eA==?=' },
  ],
  [
    { ...call, connection: 'keep-alive, mcpx' },
    { method: 'tools/call', name: 'get_weather' },
  ],
] as const)
  test(`The fields ${JSON.stringify(headers).slice(0, 160)} say which message it is`, () => {
    assert.deepEqual(mcpRequest(headers), expected)
  })

for (const [why, fields, fault] of [
  ['an older revision', { 'mcp-protocol-version': '2025-06-18' }, /^MCP-Protocol-Version is not exactly 2026-07-28/],
  ['a later revision', { 'mcp-protocol-version': '2027-01-01' }, /^MCP-Protocol-Version/],
  ['no revision', { 'mcp-protocol-version': undefined }, /^MCP-Protocol-Version/],
  ['two revisions', { 'mcp-protocol-version': '2026-07-28, 2025-06-18' }, /^MCP-Protocol-Version/],
  ['no method', { 'mcp-method': undefined }, /^Mcp-Method is missing, repeated or malformed$/],
  ['an empty method', { 'mcp-method': '' }, /^Mcp-Method/],
  ['two methods', { 'mcp-method': ['tools/list', 'tools/call'] }, /^Mcp-Method/],
  ['two methods without a space', { 'mcp-method': 'tools/list,tools/call' }, /^Mcp-Method/],
  ['a method with a space', { 'mcp-method': 'tools/call x' }, /^Mcp-Method/],
  ['an encoded method', { 'mcp-method': base64('tools/call') }, /^Mcp-Method/],
  ['a long method', { 'mcp-method': 'a'.repeat(1025) }, /^Mcp-Method/],
  ['no name of a tool', { 'mcp-name': undefined }, /^Mcp-Name is missing, repeated or malformed$/],
  ['an empty name', { 'mcp-name': '' }, /^Mcp-Name/],
  ['no URI of a resource', { 'mcp-method': 'resources/read', 'mcp-name': undefined }, /^Mcp-Name/],
  ['no name of a prompt', { 'mcp-method': 'prompts/get', 'mcp-name': undefined }, /^Mcp-Name/],
  ['a malformed name of another method', { 'mcp-method': 'tools/list', 'mcp-name': 'a,b' }, /^Mcp-Name/],
  ['two names', { 'mcp-name': 'get_weather, delete_user' }, /^Mcp-Name/],
  ['a control', { 'mcp-name': 'get\tweather' }, /^Mcp-Name/],
  ['DEL', { 'mcp-name': 'get\x7fweather' }, /^Mcp-Name/],
  ['bytes that are not ASCII', { 'mcp-name': 'caf\xc3\xa9' }, /^Mcp-Name/],
  ['a long name', { 'mcp-name': 'a'.repeat(1025) }, /^Mcp-Name/],
  ['a long encoded name', { 'mcp-name': base64('a'.repeat(800)) }, /^Mcp-Name/],
  ['an encoded control', { 'mcp-name': base64('get\nweather') }, /^Mcp-Name/],
  ['an encoded invisible character', { 'mcp-name': base64('get\u200bweather') }, /^Mcp-Name/],
  ['an encoded name in spaces', { 'mcp-name': base64(' delete_user') }, /^Mcp-Name/],
  ['an empty encoded name', { 'mcp-name': '=?base64??=' }, /^Mcp-Name/],
  ['Base64 without padding', { 'mcp-name': '=?base64?Zm9vYg?=' }, /^Mcp-Name/],
  ['Base64 with unused bits', { 'mcp-name': '=?base64?Zm9vYh==?=' }, /^Mcp-Name/],
  ['Base64 of the URL alphabet', { 'mcp-name': '=?base64?_-8=?=' }, /^Mcp-Name/],
  ['Base64 of bytes that are not UTF-8', { 'mcp-name': '=?base64?/w==?=' }, /^Mcp-Name/],
  ['a marker in upper case', { 'mcp-name': base64('x').toUpperCase() }, /^Mcp-Name/],
  ['a marker of RFC 2047', { 'mcp-name': '=?utf-8?B?eA==?=' }, /^Mcp-Name/],
  ['a field that CGI takes for the name', { mcp_name: 'delete_user' }, /^another field/],
  ['a field that CGI takes for the method', { 'mcp.method': 'tools/list' }, /^another field/],
  ['a name that the connection drops', { connection: 'close, Mcp-Name' }, /^another field/],
] as const)
  test(`The fields say nothing with ${why}`, () => {
    assert.match(mcpRequest({ ...call, ...fields }).fault ?? '', fault)
  })
