import type { Metrics } from '../observe/metrics.ts'
import type { OpenidProvider } from '../provider/openid-provider.ts'

type Refreshing = Pick<OpenidProvider, 'refresh' | 'userinfo' | 'config'>

/** The provider, with its refreshes counted. */
export function countedRefreshes(provider: Refreshing, metrics: Metrics): Refreshing {
  const refreshes = metrics.counter({
    name: 'gatehouse_refreshes_total',
    help: 'Token refreshes: refreshed, invalid_grant (the session ends), or failed (retried).',
    labels: ['outcome'],
  })
  for (const outcome of ['refreshed', 'invalid_grant', 'failed']) refreshes.of(outcome)
  return {
    config: provider.config,
    userinfo: (tokens, sub) => provider.userinfo(tokens, sub),
    refresh: async (tokens, sub) => {
      try {
        const refreshed = await provider.refresh(tokens, sub)
        refreshes.of(refreshed.kind).add()
        return refreshed
      } catch (error) {
        refreshes.of('failed').add()
        throw error
      }
    },
  }
}
