import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decide, startDecisionPoint } from '../support/decision-point.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

test('Hundreds of requests of one person, whose decisions wait, do not keep the request of another one', async (t) => {
  const point = await startDecisionPoint(t)
  const upstreamSettings = `authorize_with: { url: "${point.url}", timeout: 10s }`
  const world = await startWorld(t, { upstreamSettings })
  const [jane, samir] = [world.browser('jane'), world.browser('samir')]
  for (const browser of [jane, samir]) await browser.get(`${world.url}/`)
  const held: (() => void)[] = []
  point.answer = (req, res, evaluation) => {
    const { id } = evaluation['subject'] as { readonly id: string }
    const answer = () => decide({ decision: true })(req, res, evaluation)
    if (id === 'jane') held.push(answer)
    else answer()
  }
  let refused = 0
  const flood = Array.from({ length: 300 }, async (_, n) => {
    if ((await jane.fetch(`${world.url}/echo/${n}`)).status === 503) refused += 1
  })
  await until('no more decisions of Jane may wait', () => refused > 0)

  const { status } = await samir.fetch(`${world.url}/echo`)

  assert.equal(status, 200)
  point.answer = decide({ decision: true })
  for (const answer of held) answer()
  await Promise.all(flood)
})
