import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

const form = 'page: /login, fields: { user: "{username}", pass: "{password}" }, password: { claim: email }'

test('While no connection reaches the application, a sign-in is not over for its session', async (t) => {
  let mayPost = false
  const server = createServer((req, res) => {
    if (req.headers.cookie === 'APP=1') res.end('Orders of jane')
    else if (req.method === 'POST') res.writeHead(303, { Location: '/', 'Set-Cookie': 'APP=1; Path=/' }).end()
    else if (req.url !== '/login') res.writeHead(302, { Location: '/login' }).end()
    else {
      if (!mayPost) server.close()
      res.writeHead(200, { 'Content-Type': 'text/html', Connection: 'close' })
      res.end('<form method=post action=/login><input name=user><input name=pass></form>')
      if (!mayPost) server.closeIdleConnections()
    }
  })
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  await listen(0)
  t.after(() => void server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: `session_cookies: [APP]
    application_sign_in: { ${form} }`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)

  assert.equal((await jane.send(`${world.url}/orders`)).headers['location'], '/login')
  mayPost = true
  await listen(port)

  assert.equal((await jane.send(`${world.url}/orders`)).body, 'Orders of jane')
})
