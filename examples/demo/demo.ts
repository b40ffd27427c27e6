import { isAddressTaken } from './http.ts'
import { startDemoProvider, type DemoProvider, type DemoProviderOptions } from './provider.ts'
import { startDemoUpstream, type DemoUpstream, type DemoUpstreamOptions } from './upstream.ts'

export interface DemoOptions {
  readonly provider: DemoProviderOptions
  readonly upstream: DemoUpstreamOptions
}

export interface Demo {
  readonly provider: DemoProvider
  /** Absent: the application is a program that listened at the address before. */
  readonly upstream: DemoUpstream | undefined
  close(): Promise<void>
}

/**
 * Starts the demo provider and the demo application. If a program listens at the address of the
 * application already, that program is the application. If one of the two cannot start, none keeps
 * running.
 * @throws {OperatorError} when the port of the provider is taken, or a host is not loopback
 */
export async function startDemo(options: DemoOptions): Promise<Demo> {
  const provider = await startDemoProvider(options.provider)
  try {
    const starting = startDemoUpstream({ provider: new URL(provider.issuer), ...options.upstream })
    const upstream = await starting.catch((error: unknown) => {
      if (!isAddressTaken(error)) throw error
      return undefined
    })
    return {
      provider,
      upstream,
      close: async () => void (await Promise.all([provider.close(), upstream?.close()])),
    }
  } catch (error) {
    await provider.close()
    throw error
  }
}
