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
 * Starts the demo provider and the demo application. If one of them cannot start, none keeps
 * running.
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
