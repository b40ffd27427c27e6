import { reason } from '../../src/core/errors.ts'

/** The result of a request to the application. */
export type Delivery =
  { readonly kind: 'delivered'; readonly status: number } | { readonly kind: 'unreachable'; readonly why: string }

/** Posts a token to the application. Never rejects. */
export async function deliver(url: string, headers: Readonly<Record<string, string>>, body: string): Promise<Delivery> {
  try {
    const signal = AbortSignal.timeout(5_000)
    const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
    await response.body?.cancel()
    return { kind: 'delivered', status: response.status }
  } catch (error) {
    return { kind: 'unreachable', why: reason(error) }
  }
}

/** `what`: what was delivered, such as "the Logout Token". */
export function deliveryText(delivery: Delivery, what: string): string {
  if (delivery.kind === 'delivered') return `the application responded to ${what} with ${delivery.status}`
  return `the application could not be reached: ${delivery.why}`
}
