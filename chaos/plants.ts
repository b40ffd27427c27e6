// Faults of the gateway itself: with any of them, a run has to fail. Each is a change of one text
// of the built program.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Property } from './checker.ts'
import type { FaultKind } from './faults.ts'
import type { Setup, StoreKind } from './setup.ts'

interface Plant {
  /** A text that the built program has exactly once, and what replaces it. */
  readonly from: string
  readonly to: string
  /** The run finds at least one of these. */
  readonly finds: readonly Property[]
  /** What a run needs, so that the fault has an effect. */
  readonly setup?: Partial<Setup>
  /** The only store that has it. */
  readonly kind?: StoreKind
  /** The first fault of the run. */
  readonly fault?: FaultKind
}

/** All ways to notice that an ended session is served. */
const ended = ['ended', 'returned', 'ending-lost', 'stream'] as const

const table = {
  'notices-ignored': {
    from: 'else endings.tell(notice.keys, "elsewhere")',
    to: 'else if (Math.random() < 0.5) endings.tell(notice.keys, "elsewhere")',
    finds: ended,
  },
  'gaps-ignored': {
    from: 'if (notice.kind === "resumed") this.#reset()',
    to: 'if (notice.kind === "resumed") return',
    finds: ended,
    fault: 'replica-redis',
  },
  'grace-without-end': {
    from: 'return graceMs > 0 && staleForMs() < graceMs',
    to: 'return graceMs > 0',
    finds: ended,
    setup: { grace: 3_000 },
    fault: 'replica-redis',
  },
  'logout-token-lost': {
    from: '{ ...order, sub }, "provider", cause)',
    to: '{ ...order, sub }, "provider", cause).catch(() => [])',
    finds: ended,
  },
  'previous-session-kept': {
    from: 'endOne(key, "new_sign_in", cause)',
    to: 'tell([]) ?? Promise.resolve([])',
    finds: ended,
  },
  'streams-kept': { from: 'live.closeAll(keys);', to: '', finds: ['stream'] },
  'lease-ignored': {
    from: 'if (!await store.acquireLease(key, owner, leaseMs)) return void 0;',
    to: 'await store.acquireLease(key, owner, leaseMs);',
    finds: ['refresh-token'],
  },
  'identity-of-another': {
    from: 'known?.unsigned ?? identityHeaders(configured, record.claims, record.tokens)',
    to: `known?.unsigned ?? identityHeaders(
      configured,
      Math.random() < 0.05 && globalThis.planted || (globalThis.planted = record.claims),
      record.tokens
    )`,
    finds: ['identity'],
  },
  'store-blamed': {
    from: 'const inMemory = this.findInMemory(key);',
    to: `if (Math.random() < 0.05) throw new GatewayError("ERR_STORE_UNAVAILABLE", "planted");
    const inMemory = this.findInMemory(key);`,
    finds: ['reason'],
  },
  'form-sent-twice': {
    from: "if redis.call('HGET', KEYS[1], 'state') ~= 'kept' then return false end",
    to: '',
    finds: ['form'],
  },
  'tombstones-kept': {
    from: '\n      ttl: 2 * signInLifetimeMs',
    to: '\n      ttl: 100 * signInLifetimeMs',
    finds: ['leak'],
  },
  'files-kept': {
    from: 'if (this.#isOver(near, now)) return void 0;',
    to: `if (Math.random() < 0.05) process.getBuiltinModule('fs').openSync('/dev/null');
    if (this.#isOver(near, now)) return void 0;`,
    finds: ['leak'],
  },
  'objects-kept': {
    from: 'const inMemory = this.findInMemory(key);',
    to: `(globalThis.planted ??= []).push(new Array(3e3).fill({}));
    const inMemory = this.findInMemory(key);`,
    finds: ['leak'],
  },
  'invalid-grant-ignored': {
    from: 'await parts.endings.endOne(current.key, "invalid_grant");\n    return void 0;',
    to: 'return current;',
    finds: ended,
  },
  'identity-of-the-client': {
    from: '[...fieldsOf("signed_identity"), ...signed, ...all]',
    to: '[...fieldsOf("signed_identity"), ...signed]',
    finds: ['identity'],
  },
  'jti-ignored': {
    from: 'jti(tag, order.jti)',
    to: 'jti(tag, order.jti + Math.random())',
    finds: ['reason'],
  },
  'decision-ignored': {
    from: 'if (decision === true) return permitted;',
    to: 'return permitted;',
    finds: ['denied'],
  },
  'logout-calls-lost': {
    from: 'for (const key of keys) if (this.#ended.size < maxEnded) this.#ended.add(key);',
    to: '',
    finds: ['logout-call'],
  },
  'reset-is-an-end': {
    from: 'if (this.#isReset && this.#left === Infinity) return this.#fail(resetInContent, "responding");',
    to: '',
    finds: ['content'],
    setup: { tls: true },
  },
  'cut-responses-end': {
    from: 'this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR);',
    to: 'this.#stream.close(constants.NGHTTP2_CANCEL);',
    finds: ['content'],
    setup: { tls: true },
  },
  'form-to-each-target': {
    from: 'request.body === void 0 && idempotent.has(request.method)',
    to: 'request.body === void 0',
    finds: ['form'],
  },
  'provider-keys-kept': {
    from: 'const renewed = mayBeRotated ? await this.#renewed(keys) : void 0;',
    to: 'const renewed = void 0;',
    finds: ['reason'],
    fault: 'provider-keys',
  },
  'withdrawn-keys-kept': {
    from: 'this.#keys = [first, ...others];',
    to: 'this.#keys = [first, ...others, ...globalThis.planted ?? []], globalThis.planted = this.#keys;',
    finds: ended,
    fault: 'keys-withdrawn',
  },
  'proof-ignored': {
    from: 'const fault = this.#faultIn(key, cookieHeader);',
    to: 'const fault = void 0;',
    finds: ['device'],
    setup: { tls: true },
  },
  'signal-ignored': {
    from: 'await carryOut(token, parts, request2.cause);',
    to: '',
    finds: ended,
  },
  'access-token-kept': {
    from: 'if (ending === void 0) return cached.accepted;',
    to: 'return cached.accepted;',
    finds: ['token'],
  },
  'exchanged-for-another': {
    from: 'const flight = `${key} ${wantedText}`;',
    to: 'const flight = wantedText;',
    finds: ['token'],
  },
  'writes-not-synced': {
    from: '`PRAGMA synchronous = ${isDurable ? "FULL" : "NORMAL"}`',
    to: '`PRAGMA synchronous = NORMAL`',
    finds: [...ended, 'reason', 'refresh-token', 'form'],
    kind: 'file',
    fault: 'power',
  },
  'worker-dies': {
    from: 'const inMemory = this.findInMemory(key);',
    to: `if (Math.random() < 0.0005) process.abort();
    const inMemory = this.findInMemory(key);`,
    finds: ['liveness'],
  },
} as const satisfies Readonly<Record<string, Plant>>

export const plants: Readonly<Record<string, Plant>> = table

/** Each day, and so each night, has another one. */
export function plantOfTheDay(date: Date): string {
  const names = Object.keys(table)
  return names[Math.floor(date.getTime() / 86_400_000) % names.length] ?? ''
}

/** Changes the build in a folder: it has the fault from now on. */
export function plantFault(name: string, folder: string): void {
  const { file, text } = plantedFile(name, folder)
  writeFileSync(join(folder, file), text)
}

/** The file of a build that a fault changes, and its text with the fault. */
export function plantedFile(name: string, folder: string): { readonly file: string; readonly text: string } {
  const plant = plants[name]
  if (plant === undefined) throw new Error(`There is no fault ${name}, but ${Object.keys(plants).join(', ')}`)
  const { from, to } = plant
  const files = readdirSync(folder).filter((file) => file.endsWith('.js'))
  const texts = files.map((file) => ({ file, text: readFileSync(join(folder, file), 'utf8') }))
  const found = texts.filter(({ text }) => text.includes(from))
  const [only] = found
  if (only === undefined || found.length > 1 || only.text.split(from).length > 2)
    throw new Error(`The built program does not have exactly once: ${from}`)
  return { file: only.file, text: only.text.replace(from, () => to) }
}
