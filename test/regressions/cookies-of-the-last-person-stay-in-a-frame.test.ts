import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer as createPlainServer } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { test, type TestContext } from 'node:test'
import { issueCertificates, siteDomain } from '../support/certificates.ts'
import { startChromium } from '../support/chromium.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

const chromium = await startChromium({ partitions: true })
const { cert, key } = issueCertificates().server

async function portOf(t: TestContext, server: Server & { closeAllConnections(): void }): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

const partitioned = 'Path=/; Secure; SameSite=None; Partitioned'

test('A sign-out in a frame of another site deletes the cookies of the application there', async (t) => {
  const application = await portOf(
    t,
    createPlainServer((_req, res) => {
      const headers = { 'content-type': 'text/html', 'set-cookie': `application=jane; ${partitioned}` }
      res.writeHead(200, headers).end('<h1>The application</h1>')
    }),
  )
  let framed = ''
  const portal = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html><iframe src="${framed}"></iframe>`)
  })
  const origin = `https://localhost:${await portOf(t, portal)}`
  const world = await startWorld(t, {
    externalUrl: (port) => `https://app.${siteDomain}:${port}`,
    listen: (address) => `{ address: "${address}", tls: { cert_file: ${cert}, key_file: ${key} } }`,
    session: `embedded_in: ["${origin}"]`,
    upstream: new URL(`http://127.0.0.1:${application}`),
    upstreamSettings: 'logout: { cookies: [application] }',
  })
  framed = `${world.url}/`
  const page = await (await chromium.person(t, { ignoreHTTPSErrors: true })).tab()
  const hasCookie = async () => (await page.context().cookies()).some(({ name }) => name === 'application')
  await page.goto(origin)
  const frame = page.frameLocator('iframe')
  const opening = page.waitForEvent('popup')
  await frame.getByRole('link', { name: 'Sign in' }).click()
  await (await opening).getByRole('button', { name: 'Jane Doe' }).click()
  await frame.getByRole('heading', { name: 'The application' }).waitFor()
  await until('the frame has the cookie', hasCookie)

  await page.frames()[1]?.evaluate(`location.assign('/.gatehouse/sign-out')`)

  await frame.getByRole('link', { name: 'Sign in' }).waitFor()
  assert.equal(await hasCookie(), false)
})
