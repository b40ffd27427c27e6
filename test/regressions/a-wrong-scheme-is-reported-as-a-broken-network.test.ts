import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { providerFindings } from '../../packages/doctor/provider.ts'
import { redisFindings } from '../../packages/doctor/redis.ts'
import { upstreamFindings } from '../../packages/doctor/upstreams.ts'
import { isShared } from '../../src/config/model/session.ts'
import { systemClock } from '../../src/core/clock.ts'
import type { Log, LogFields } from '../../src/observe/log.ts'
import { Discovery } from '../../src/provider/discovery.ts'
import { examineProvider } from '../../src/provider/examine.ts'
import { createOutbound } from '../../src/provider/outbound.ts'
import { examineRedis } from '../../src/session/store/redis/examine.ts'
import { RedisStore } from '../../src/session/store/redis/redis-store.ts'
import { configOf, finding } from '../doctor/support.ts'
import { fetchWhole, startGateway } from '../proxy/support.ts'
import { issueCertificates } from '../support/certificates.ts'
import { replacePauses } from '../support/pauses.ts'
import { startRedis } from '../support/redis.ts'
import { explainingTlsServer, plainServer, tlsServer } from '../support/tls-servers.ts'
import { until } from '../support/until.ts'

// https to a port without TLS, http to a port with TLS, and the same with Redis. The log and doctor
// name the scheme instead of "socket hang up", "wrong version number" or ETIMEDOUT.

const writeHttps = (port: number) => new RegExp(`^[Pp]ort ${port} speaks TLS: write https://`)
const noTls = (port: number) => new RegExp(`^[Pp]ort ${port} does not speak TLS, which https:// needs`)

function recordingLog(): { log: Log; hints: (message: string) => string[] } {
  const lines: { message: string; fields: LogFields }[] = []
  const write = (message: string, fields: LogFields = {}) => void lines.push({ message, fields })
  return {
    log: { debug: write, info: write, warn: write, error: write, announce: write },
    hints: (wanted) => lines.flatMap(({ message, fields }) => (message === wanted ? [String(fields['hint'])] : [])),
  }
}

/** `[url, message]` for each kind of server with the wrong scheme. */
async function wrongUrls(t: TestContext): Promise<[string, RegExp][]> {
  const [plain, secure, explaining] = [
    await plainServer(t),
    await tlsServer(t, issueCertificates().server),
    await explainingTlsServer(t),
  ]
  return [
    [`https://127.0.0.1:${plain}`, noTls(plain)],
    [`http://127.0.0.1:${secure}`, writeHttps(secure)],
    [`http://127.0.0.1:${explaining}`, writeHttps(explaining)],
  ]
}

test("An error names the wrong scheme of the provider's address", async (t) => {
  for (const [issuer, said] of await wrongUrls(t)) {
    const [provider] = configOf(t, { issuer }).providers
    const { log, hints } = recordingLog()
    const outbound = createOutbound(provider)
    const discovery = new Discovery(provider, { outbound, clock: systemClock, log })
    t.after(async () => {
      discovery.close()
      await outbound.close()
    })

    await assert.rejects(discovery.provider(), { code: 'ERR_PROVIDER_UNAVAILABLE' })
    const findings = providerFindings(await examineProvider(provider, []), provider, [])

    assert.match(hints('provider.unavailable')[0] ?? '', said)
    assert.match(finding(findings, 'provider.discovery').todo ?? '', said)
  }
})

test("An error names the wrong scheme of an upstream's address", async (t) => {
  for (const [url, said] of await wrongUrls(t)) {
    const { origin, logged } = await startGateway(t, 1, { upstream: { url: new URL(url) } })
    const { upstreams } = configOf(t, { upstream: `url: ${url}` })

    for (let each = 0; each < 3; each++) await fetchWhole(origin)
    const lines = () => logged.filter(({ message }) => message === 'upstream.wrong_scheme')
    await until('the line about the scheme', () => lines().length > 0)
    const findings = await Promise.all(upstreams.map((upstream) => upstreamFindings(upstream, [])))

    assert.match(String(lines()[0]?.fields['hint']), said)
    assert.equal(lines().length, 1, 'not for each request')
    const { level, todo } = finding(findings.flat(), 'upstream.reachable')
    assert.equal(level, 'fault')
    assert.match(todo ?? '', said)
  }
})

test('An error names the wrong scheme of the Redis address', async (t) => {
  replacePauses(t, { examineStoreMs: 500, connectToStoreMs: 300, reconnectToStoreMs: 100 })
  const [plain, secure] = [await startRedis(t), await startRedis(t, { tls: issueCertificates().server })]
  for (const [url, said] of [
    [
      `rediss://127.0.0.1:${plain.port}`,
      /does not speak TLS, which rediss:\/\/ needs: .*, or write redis:\/\/ in session/,
    ],
    [`redis://127.0.0.1:${secure.port}`, /speaks TLS: write rediss:\/\/ in session\.store\.redis\.url$/],
  ] as const) {
    const { store: config } = configOf(t, { store: `{ redis: { url: "${url}", timeout: 300ms } }` }).session
    assert.ok(isShared(config))
    const { log, hints } = recordingLog()
    const store = new RedisStore(config, { log, clock: systemClock })
    t.after(() => store.close())

    await until('the line about the scheme', () => hints('store.wrong_scheme').length > 0)
    const findings = redisFindings(await examineRedis(config), config)

    assert.match(hints('store.wrong_scheme')[0] ?? '', said)
    assert.match(finding(findings, 'redis.connection').todo ?? '', said)
  }
})
