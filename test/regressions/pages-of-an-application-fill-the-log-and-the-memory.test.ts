import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSigningInApplication } from '../support/signing-in-application.ts'
import { startWorld } from '../support/world.ts'

const form = 'page: /login, fields: { user: "{username}", pass: "{password}" }, password: { claim: email }'

test('A page with ever new texts in its form leads to one warning', async (t) => {
  const application = await startSigningInApplication(t)
  const upstreamSettings = `session_cookies: [APP]
    application_sign_in: { ${form} }`
  const world = await startWorld(t, { upstream: application.url, upstreamSettings })
  let pages = 0
  application.respond = (req, res) => {
    if (req.url?.startsWith('/login') !== true) return false
    // A form with a file is not understood.
    const field = `<input type=file name=x data-${(pages += 1)}>`
    res.setHeader('Content-Type', 'text/html')
    res.end(`<form method=post action=/login><input name=user><input name=pass>${field}</form>`)
    return true
  }
  const jane = world.browser()
  for (let times = 0; times < 3; times += 1) await jane.get(`${world.url}/orders`)

  const lines = world.replicas.flatMap(({ log }) => log).filter(({ message }) => message === 'application_sign_in.left')
  assert.ok(lines.length >= 3)
  assert.equal(lines.filter(({ level }) => level === 'warn').length, 1)
})
