import type { RejectedClients } from '../limits/rejected-clients.ts'
import type { Metrics } from '../observe/metrics.ts'

/** Why no request could be read. */
export type Unreadable = 'header_size' | 'incomplete' | 'malformed' | 'http_on_tls' | 'tls_on_http'

const hints: Readonly<Record<Unreadable, string>> = {
  header_size:
    'The URL and the headers exceed limits.header_size. The usual cause is too many cookies of this domain: remove them in the browser (its page has a button for it), find the application that sets them, or raise the limit.',
  incomplete:
    'The client sent no complete request within limits.headers_timeout. A slow network or an attack is usual.',
  malformed: 'The client sent no valid HTTP request. A scanner, or a client of another protocol, is usual.',
  http_on_tls: 'The client used http, but listen has tls. Use https in its URL.',
  tls_on_http: 'The client used https, but listen has no tls. Use http in its URL, or set listen.tls.',
}

/** Counts and logs what Node's parser, or TLS, has rejected before there was a request. */
export class UnreadableRequests {
  readonly #note: (reason: Unreadable, client: string, why: string) => void

  constructor(metrics: Metrics, rejectedClients: Pick<RejectedClients, 'noteUnreadable'>) {
    const total = metrics.counter({
      name: 'gatehouse_unreadable_requests_total',
      help: 'Requests that the parser or TLS has rejected, by reason.',
      labels: ['reason'],
    })
    for (const reason of Object.keys(hints)) total.of(reason)
    this.#note = (reason, client, why) => {
      total.of(reason).add()
      rejectedClients.noteUnreadable(reason, client, why, hints[reason])
    }
  }

  /** @param why the words of the parser */
  note(reason: Unreadable, client: string | undefined, why: string): void {
    this.#note(reason, client ?? 'unknown', why)
  }
}
