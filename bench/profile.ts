// Profiles the processor time of a signed-in request or of a sign-in. `npm run profile`; see
// bench/README.md.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { issueCertificates } from '../test/support/certificates.ts'
import { freePort } from '../test/support/free-port.ts'
import { readOptions } from '../test/support/options.ts'
import { makeBed } from './bed.ts'
import { gatehouse, isExtra } from './contenders/gatehouse.ts'
import { Profiler, selfTimes } from './cpu-profile.ts'
import type { LoadOrder } from './load/order.ts'
import { usualLoad } from './measure.ts'
import { table } from './report.ts'
import { postLogoutToken, tokensFor } from './scenarios/logout-tokens.ts'
import { withStored } from './scenarios/misses.ts'
import { signInMany } from './scenarios/sign-ins.ts'
import { stand, trustOnly } from './stand.ts'

const values = readOptions('npm run profile', {
  out: { type: 'string', default: 'gatehouse.cpuprofile' },
  seconds: { type: 'string', default: '5' },
  store: { type: 'string', default: 'redis' },
  /** What the upstream has besides: see contenders/gatehouse.ts. */
  with: { type: 'string' },
  node: { type: 'string', default: process.execPath },
  body: { type: 'string', default: String(usualLoad.bodyBytes) },
  upload: { type: 'string' },
  /** Requests and responses have few header fields, instead of those of real traffic. */
  few: { type: 'boolean', default: false },
  connections: { type: 'string', default: String(usualLoad.connections) },
  'sign-ins': { type: 'string' },
  /** Logout Tokens, one at a time, each for the session of another person. */
  'logout-tokens': { type: 'string' },
  /** TLS in front: `kept` connections, a `handshake` for each request, or `http2`. */
  tls: { type: 'string' },
  /** Each request reads its session from Redis: see scenarios/misses.ts. */
  misses: { type: 'boolean', default: false },
  /** WebSocket messages instead of requests: see load/websocket.ts. */
  messages: { type: 'boolean', default: false },
})

execFileSync('taskset', ['-acp', '1', String(process.pid)])
const bed = await makeBed()
const inspector = await freePort()
const certificate = values.tls === undefined ? undefined : issueCertificates().server
if (certificate !== undefined) trustOnly(certificate)
const started = await stand(
  bed,
  gatehouse(values.store === 'memory' ? 'memory' : 'redis', isExtra(values.with) ? values.with : undefined),
  {
    node: values.node,
    tls: certificate,
    nodeOptions: [`--inspect=127.0.0.1:${inspector}`],
    // The warm-up and the profile end the sessions of different people.
    people: 2 * Number(values['logout-tokens'] ?? 0) || 1,
  },
)
const standing = values.misses ? await withStored(bed, started) : started
const { port, tls, stop } = standing
/** With `--misses`, each load continues with the sessions after those of the load before. */
const orderNow = (): LoadOrder => {
  const { visitors } = standing
  const common = { connections: Number(values.connections), port, tls, visitors, ms: Number(values.seconds) * 1000 }
  if (values.messages) return { kind: 'websockets', areIdle: false, ...common }
  return {
    kind: 'requests',
    bodyBytes: Number(values.body),
    fields: values.few ? 'few' : 'typical',
    ...(values.tls === 'handshake' && { reconnects: true }),
    ...(values.tls === 'http2' && { streams: 8 }),
    ...(values.upload === undefined ? {} : { uploadBytes: Number(values.upload) }),
    ...common,
  }
}
const signIns = values['sign-ins']
const logoutTokens = values['logout-tokens']
const left = [...standing.visitors]
/** Resolves to the number of requests or messages. */
const load = async (): Promise<number> => {
  if (logoutTokens !== undefined) return endSessions(Number(logoutTokens))
  if (signIns === undefined) return (await bed.load(orderNow())).count
  await signInMany(standing, Number(signIns))
  return Number(signIns)
}
function whatIsProfiled(): string {
  if (logoutTokens !== undefined) return 'Logout Token'
  if (signIns !== undefined) return 'sign-in'
  return values.messages ? 'message' : 'request'
}

async function endSessions(count: number): Promise<number> {
  const ending = { stand: standing, left: left.splice(0, count), tokens: bed.provider.logoutToken }
  for (const logout_token of await tokensFor(ending)) await postLogoutToken(standing, logout_token)
  return count
}
// V8 compiles the hot code in this first run, before the profile begins.
await load()
const profiler = await Profiler.connect(inspector)
await profiler.start(200)
const count = await load()
const profile = await profiler.stop()
writeFileSync(values.out, JSON.stringify(profile))
await stop()
await bed.close()

const functions = selfTimes(profile)
const what = whatIsProfiled()
const total = functions.reduce((sum, { micros }) => sum + micros, 0)
const top = functions.slice(0, 10).map(({ functionName, place, micros }) => {
  const share = `${((100 * micros) / total).toFixed(1)} %`
  return [`\`${functionName}\` ${place}`, share, (micros / count).toFixed(2)]
})
console.log(
  `${count} ${what}s; ${(total / count).toFixed(1)} µs each in the main thread, the profiler's own cost included.\n`,
)
console.log(table(['self time of', 'share', `µs/${what}`], top))
console.log(`\n${values.out}: open it in Chrome (DevTools, Performance), in VS Code, or at https://www.speedscope.app.`)
process.exit()
