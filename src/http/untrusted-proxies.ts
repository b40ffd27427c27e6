import { ipAddress } from '../core/addresses.ts'
import type { Log } from '../observe/log.ts'
import type { HeaderView, TrustedProxies } from './forwarded.ts'

/** The fields in which a proxy describes the client of a request. */
const fields = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'forwarded'] as const

/** How many peers are named. Any client can send these fields, and must not fill the log. */
const maxPeers = 8

/**
 * Says in the log, once for each peer, that a peer sends fields of a proxy and is not in
 * `trusted_proxies`. Otherwise nothing would show why all people have the address of the proxy.
 */
export class UntrustedProxies {
  readonly #peers = new Set<string>()
  readonly #trusted: TrustedProxies
  readonly #log: Log

  constructor(trusted: TrustedProxies, log: Log) {
    this.#trusted = trusted
    this.#log = log
  }

  note(remoteAddress: string | undefined, headers: HeaderView): void {
    if (this.#peers.size >= maxPeers || remoteAddress === undefined) return
    const sent = fields.filter((name) => headers[name] !== undefined)
    if (sent.length === 0) return
    const peer = ipAddress(remoteAddress)
    if (peer === undefined || this.#peers.has(peer) || this.#trusted.has(peer)) return
    this.#peers.add(peer)
    this.#log.warn('proxy.not_trusted', {
      peer,
      fields: sent.join(', '),
      hint: `The gateway ignores these fields and takes ${peer} for the client. If ${peer} is a proxy of yours, set trusted_proxies: [${peer}]. If it is a client, ignore this line.`,
    })
  }
}
