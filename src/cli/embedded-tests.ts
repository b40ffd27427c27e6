import type { Diagnostic } from '../config/diagnostics.ts'
import type { EmbeddedTest, GatewayConfig, UpstreamConfig } from '../config/model.ts'
import { reason } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import type { Admission } from '../gate/admission.ts'
import { createAdmit } from '../gate/admit.ts'
import { TrustedProxies } from '../gate/forwarded.ts'
import type { Identity } from '../gate/identify.ts'
import { requestFacts } from '../gate/request-facts.ts'
import { headerPairs } from './header-text.ts'

/** Runs the tests that stand in the file through the very decision that serves requests; answers what fails. */
export function failingTests(config: GatewayConfig): Diagnostic[] {
  return config.upstreams.flatMap((upstream) =>
    upstream.tests.flatMap((test) => {
      const why = failure(test, upstream, config)
      if (why === undefined) return []
      const message = `${test.method} ${test.path}: ${why}`
      return [{ severity: 'error' as const, ...test.place, path: test.setting, message }]
    }),
  )
}

function failure(test: EmbeddedTest, upstream: UpstreamConfig, config: GatewayConfig): string | undefined {
  const admission = admissionOf(test, upstream, config)
  if (typeof admission === 'string') return admission
  const outcome: string = admission.kind
  if (outcome !== test.expect) {
    const why = admission.kind === 'forbidden' ? ` (${admission.why})` : ''
    return `expected ${test.expect}, but the outcome is ${outcome}${why}`
  }
  if (admission.kind !== 'pass') return undefined
  const headers = new Map(headerPairs(admission.identity).map(([name, text]) => [name.toLowerCase(), text]))
  for (const [name, expected] of Object.entries(test.headers)) {
    const value = headers.get(name.toLowerCase()) ?? null
    if (value !== expected) return `expected the header ${name} to be ${shown(expected)}, but it is ${shown(value)}`
  }
  return undefined
}

function admissionOf(test: EmbeddedTest, upstream: UpstreamConfig, config: GatewayConfig): Admission | string {
  const admit = createAdmit(config, {
    identify: () => whoIs(test, config),
    cookie: { forget: () => [], isStrict: false },
    log: silent,
  })
  // As a browser asks for a page: that is what people have in mind when they write a test.
  const headers = { host: upstream.hosts[0] ?? upstream.externalUrl.host, accept: 'text/html' }
  try {
    const facts = requestFacts({ method: test.method, url: test.path, headers, socket: {} }, new TrustedProxies([]))
    const admission = admit(facts)
    return admission instanceof Promise ? 'the decision takes its time' : admission
  } catch (error) {
    return reason(error)
  }
}

function whoIs({ as }: EmbeddedTest, { provider }: GatewayConfig): Identity {
  if (as === undefined) return { kind: 'anonymous', staleCookie: false }
  const sub = String(as['sub'] ?? 'test')
  const record = {
    iss: provider.issuer,
    sub,
    created_at: 0,
    absolute_expires_at: Infinity,
    tokens: { access_token: '', obtained_at: 0, id_token: '' },
    claims: { iss: provider.issuer, ...as, sub },
    userinfo_read_at: 0,
  }
  return { kind: 'signed_in', session: { key: 'test' as SessionKey, version: 1, record, sealedBytes: 0 } }
}

function shown(value: string | null): string {
  return value === null ? 'absent' : `"${value}"`
}

const silent = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }
