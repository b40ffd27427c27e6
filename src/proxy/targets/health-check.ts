import type { HealthCheckConfig, UpstreamConfig } from '../../config/model/upstream.ts'
import { GatewayError } from '../../core/errors.ts'
import type { ExchangeControl, ResponseHandler, SwitchedConnection, Transport } from '../../transport/transport.ts'
import type { GiveBack } from '../../wire/read-buffers.ts'

/**
 * Sends a health check on a connection of its own, so that it does not wait behind requests. It has
 * no identity.
 * @returns why the target is not healthy; `undefined` when it is
 */
export async function checkHealth(
  { externalUrl, hostHeader, url }: Pick<UpstreamConfig, 'externalUrl' | 'hostHeader' | 'url'>,
  { path, timeoutMs, expect }: Pick<HealthCheckConfig, 'path' | 'timeoutMs' | 'expect'>,
  connect: () => Transport,
): Promise<string | undefined> {
  const transport = connect()
  const probe = new Probe()
  const timer = setTimeout(() => probe.end(`no response within ${timeoutMs} ms`), timeoutMs)
  const host = hostHeader === 'client' ? externalUrl.host : url.host
  const headers = ['Host', host, 'Accept', '*/*', 'User-Agent', 'Gatehouse']
  transport.dispatch({ method: 'GET', path, headers, identity: [], body: undefined, upgrade: undefined }, probe)
  const outcome = await probe.outcome
  clearTimeout(timer)
  void transport.destroy()
  if (typeof outcome === 'string') return outcome
  const isExpected = expect.length === 0 ? outcome < 400 : expect.includes(outcome)
  return isExpected ? undefined : `status ${outcome}`
}

/** Waits for the head of a response. The content is not read, because it may never end. */
class Probe implements ResponseHandler {
  readonly #outcome = Promise.withResolvers<number | string>()
  /** The status of the response, or the reason why there is none. */
  readonly outcome = this.#outcome.promise
  #control: ExchangeControl | undefined

  end(outcome: number | string): void {
    this.#outcome.resolve(outcome)
    this.#control?.abort(over)
  }

  onSend(control: ExchangeControl): boolean {
    this.#control = control
    return true
  }

  onResponse(status: number): void {
    if (status >= 200) this.end(status)
  }

  onShortPart(): void {}

  onContent(_: Buffer, giveBack: GiveBack): void {
    giveBack()
  }

  onEnd(): void {}

  onSwitch({ socket }: SwitchedConnection): void {
    socket.destroy()
    this.#outcome.resolve('the target switched to another protocol')
  }

  onError(error: GatewayError): void {
    this.#outcome.resolve(error.message)
  }

  onDone(): void {}
}

/** Ends the exchange after the status is known. Nothing logs it. */
const over = new GatewayError('ERR_INTERNAL', 'the health check is over')
