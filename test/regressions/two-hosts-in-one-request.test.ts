import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

/** The status line of the response to these bytes. */
async function statusLine(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write(bytes)
  const [response] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  return response.toString().split('\r\n')[0] ?? ''
}

test('A request whose target and Host name different hosts is rejected', async (t) => {
  const { url } = await startWorld(t)
  const { host } = new URL(url)
  const get = (target: string, named: string) =>
    statusLine(url, `GET ${target} HTTP/1.1\r\nHost: ${named}\r\nConnection: close\r\n\r\n`)

  assert.equal(await get(`http://${host}/static/about.txt`, host), 'HTTP/1.1 200 OK')
  assert.equal(await get(`HTTP://${host}/static/about.txt`, host), 'HTTP/1.1 200 OK')
  for (const target of [
    'http://elsewhere.example/static/about.txt',
    `http://${host}.elsewhere.example/static/about.txt`,
    `http://elsewhere@${host}/static/about.txt`,
    `http://elsewhere.example?${host}`,
    'http://elsewhere.example',
  ])
    assert.equal(await get(target, host), 'HTTP/1.1 400 Bad Request', target)
  assert.equal(await get(`http://${host}/static/about.txt`, 'elsewhere.example'), 'HTTP/1.1 400 Bad Request')
})
