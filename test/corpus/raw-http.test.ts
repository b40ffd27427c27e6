import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exchangeRaw, type RawResponse } from '../support/raw-exchange.ts'
import type { SeenRequest } from '../support/strict-upstream.ts'
import {
  caseName,
  fold,
  isIdentityName,
  openPath,
  protectedPath,
  readCases,
  repeated,
  runCases,
  type Lane,
} from './lanes.ts'

type Outcome = 'reject' | 'close' | 'login' | 'forward' | 'forward-2' | 'incomplete' | 'answered'

interface RawCase {
  readonly name: string
  readonly raw: string
  readonly allow: readonly Outcome[]
  readonly regression?: string
  /** The statuses of all responses. */
  readonly statuses?: readonly number[]
  /** What becomes of the connection. */
  readonly end?: RawResponse['end']
  /** How many requests the application gets when the case is forwarded. */
  readonly n?: number
  /** The request target that the application gets. */
  readonly target?: string
  /** The content that the application gets. */
  readonly body?: string
  /**
   * Header names that the application must not or must get. `lacksExactly` compares exactly, the
   * others compare all spellings.
   */
  readonly lacks?: readonly string[]
  readonly lacksExactly?: readonly string[]
  readonly has?: readonly string[]
  /** No identity header has this value. */
  readonly identityLacks?: string
  /** The `Host` that the application gets does not contain this. */
  readonly hostLacks?: string
  /** The response does not contain this. */
  readonly answerLacks?: readonly string[]
  /** The request never ends, so the gateway has to end it. */
  readonly isSlow?: boolean
}

const { cases } = readCases<{ readonly cases: readonly RawCase[] }>('raw-http.json')
const [slow, quick] = [cases.filter(({ isSlow }) => isSlow), cases.filter(({ isSlow }) => !isSlow)]

for (const [who, protocol] of [
  ['anonymous', 'HTTP/1.1'],
  ['signed in', 'HTTP/1.1'],
  ['signed in', 'HTTP/2'],
] as const)
  test(
    `Raw requests to ${protocol}, ${who}: each is rejected, or reaches the application exactly as sent`,
    { concurrency: true },
    async (t) => {
      await runCases(
        t,
        quick,
        caseName,
        async (aCase, lane) =>
          judge(aCase, await send(aCase, lane, who === 'signed in' ? lane.cookie : undefined), lane),
        { protocol },
      )
    },
  )

test('The gateway ends raw requests that never end', { concurrency: true }, async (t) => {
  await runCases(
    t,
    slow,
    caseName,
    async (aCase, lane) => {
      const response = await send(aCase, lane, undefined, 10_000)
      assert.equal(response.end, 'closed')
      judge(aCase, response, lane)
    },
    { lanes: 1, settings: 'limits: { headers_timeout: 1s }' },
  )
})

async function send(aCase: RawCase, lane: Lane, cookie: string | undefined, waitMs = 1500): Promise<RawResponse> {
  return exchangeRaw(lane.port, bytesOf(aCase.raw, lane.host, cookie), { waitMs })
}

function bytesOf(raw: string, host: string, cookie: string | undefined): string {
  const fill = (text: string) =>
    text
      .replaceAll('{host}', host)
      .replaceAll('{open}', openPath)
      .replaceAll('{protected}', protectedPath)
      .replaceAll('{cookie}', cookie === undefined ? '' : `Cookie: ${cookie}\r\n`)
  const smuggled = fill('GET {protected} HTTP/1.1\r\nHost: {host}\r\nX-Smuggled: 1\r\n\r\n')
  return repeated(fill(raw))
    .replaceAll('{smuggled:hex}', smuggled.length.toString(16))
    .replaceAll(/\{smuggled:length(?:\+(\d+))?\}/g, (_, more = '0') => String(smuggled.length + Number(more)))
    .replaceAll('{smuggled}', smuggled)
}

function judge(aCase: RawCase, response: RawResponse, { upstream: { seen } }: Lane): void {
  const outcome = outcomeOf(response, seen)
  const told = `${outcome}: status ${response.statuses.join(', ') || 'none'}, ${seen.map(({ requestLine }) => requestLine)}`
  assert.ok(isAllowed(outcome, aCase.allow, response), `${told}; allowed: ${aCase.allow.join(', ')}`)
  assert.ok(!response.statuses.includes(500), told)
  if (aCase.statuses) assert.deepEqual(response.statuses, aCase.statuses, told)
  if (aCase.end) assert.equal(response.end, aCase.end, told)
  const whole = seen.filter(({ isWhole }) => isWhole)
  if (outcome.startsWith('forward')) assert.equal(whole.length, aCase.n ?? 1, told)
  for (const request of seen) judgeForwarded(aCase, request, outcome)
  for (const text of aCase.answerLacks ?? []) assert.ok(!response.text.includes(text), `the answer holds ${text}`)
}

function outcomeOf({ statuses: [status] }: RawResponse, seen: readonly SeenRequest[]): Outcome {
  const whole = seen.filter(({ isWhole }) => isWhole)
  if (whole.length > 0) return whole.length === 2 ? 'forward-2' : 'forward'
  if (seen.length > 0) return 'incomplete'
  if (status === undefined) return 'close'
  if (status < 300) return 'answered'
  return status < 400 || status === 401 || status === 403 ? 'login' : 'reject'
}

function isAllowed(outcome: Outcome, allow: readonly Outcome[], { statuses: [status = 0] }: RawResponse): boolean {
  return allow.includes(outcome) || (outcome === 'login' && status >= 400 && allow.includes('reject'))
}

function judgeForwarded(aCase: RawCase, request: SeenRequest, outcome: Outcome): void {
  const names = request.headers.map(([name]) => name.toLowerCase())
  const values = (wanted: string) =>
    request.headers.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value)
  assert.ok(
    !names.includes('x-smuggled') && !request.target.startsWith(protectedPath),
    `smuggled: ${request.requestLine}`,
  )
  assert.deepEqual(request.faults, [], 'an application could read it in another way')
  if (aCase.target !== undefined) assert.equal(request.target, aCase.target)
  for (const name of aCase.lacksExactly ?? []) assert.ok(!names.includes(name), `${name} went on`)
  for (const name of aCase.lacks ?? []) assert.ok(!names.map(fold).includes(name), `${name} went on`)
  for (const name of aCase.has ?? []) assert.ok(names.includes(name), `${name} is missing`)
  for (const [name, value] of request.headers)
    if (aCase.identityLacks !== undefined && isIdentityName(name))
      assert.ok(!value.includes(aCase.identityLacks), `${name}: ${value}`)
  if (aCase.hostLacks !== undefined) assert.ok(!values('host').join().includes(aCase.hostLacks))
  assert.ok(['', 'trailers'].includes(values('te').join()), 'TE went on')
  for (const line of request.trailers)
    assert.doesNotMatch(line, /^(?:content-length|transfer-encoding|host|cookie|x[-_]user[-_]sub) *:/i)
  if (aCase.body !== undefined && outcome === 'forward') assert.equal(request.body, aCase.body)
}
