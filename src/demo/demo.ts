import { startDemoProvider, type DemoProvider, type DemoProviderOptions } from './provider.ts'
import { startDemoUpstream, type DemoUpstream, type DemoUpstreamOptions } from './upstream.ts'

export interface DemoOptions {
  readonly provider: DemoProviderOptions
  readonly upstream: DemoUpstreamOptions
}

export interface Demo {
  readonly provider: DemoProvider
  readonly upstream: DemoUpstream
  close(): Promise<void>
}

/**
 * Starts what stands on either side of the gateway: a provider before it, an application behind it.
 * Both or neither.
 * @throws {OperatorError} when a port is taken, or a host is not loopback
 */
export async function startDemo(options: DemoOptions): Promise<Demo> {
  const provider = await startDemoProvider(options.provider)
  try {
    const upstream = await startDemoUpstream({ provider: new URL(provider.issuer), ...options.upstream })
    return {
      provider,
      upstream,
      close: async () => void (await Promise.all([provider.close(), upstream.close()])),
    }
  } catch (error) {
    await provider.close()
    throw error
  }
}
