// What differs between runs, besides their faults.
import { replicaNames } from './parties.ts'

/** Redis with Sentinels, a Cluster, one server, or the file of a gateway that is alone. */
export const storeKinds = ['sentinel', 'cluster', 'plain', 'file'] as const
export type StoreKind = (typeof storeKinds)[number]

export interface Setup {
  readonly kind: StoreKind
  readonly replicas: readonly string[]
  /** The worker processes of each replica. */
  readonly workers: number
  /** `session.store_outage_grace` in ms. */
  readonly grace: number
  readonly replicasAcknowledge: number
  /**
   * Browsers use TLS and HTTP/2, and so does the gateway to one application; TLS only to another
   * one.
   */
  readonly tls: boolean
}

/** Each second seed has the defaults; two of four have TLS. */
export function setupOf(kind: StoreKind, seed: number): Setup {
  const isDefault = seed % 2 === 0
  const hasReplicas = kind === 'sentinel' || kind === 'cluster'
  return {
    tls: seed % 4 >= 2,
    ...{ kind, grace: isDefault ? 0 : 3_000, replicasAcknowledge: isDefault || !hasReplicas ? 0 : 1 },
    ...(kind === 'file' ? { replicas: replicaNames.slice(0, 1), workers: 1 } : { replicas: replicaNames, workers: 2 }),
  }
}
