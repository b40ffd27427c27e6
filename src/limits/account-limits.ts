import type { Clock } from '../core/clock.ts'
import { ClientBudget } from './client-budget.ts'
import { FairQueue } from './fair-queue.ts'
import type { RejectedClients } from './rejected-clients.ts'

/**
 * How many wrong secrets of service accounts each client may send, and how many each name may get.
 */
const wrongPerClient = { count: 10, perMs: 60_000 }
const wrongPerAccount = { count: 30, perMs: 60_000 }
/**
 * Node.js has four threads for hashes, files and names. Two of them stay free, and each computation
 * takes 16 to 128 MiB.
 */
const hashesAtOnce = 2
/** How many further ones may wait. */
const maxWaitingHashes = 64

/** The limits for the verification of the secrets of service accounts. */
export function createAccountLimits(parts: { readonly clock: Clock; readonly rejectedClients: RejectedClients }) {
  const { clock, rejectedClients } = parts
  return {
    perClient: new ClientBudget(wrongPerClient, clock),
    perAccount: new ClientBudget(wrongPerAccount, clock),
    turns: new FairQueue<() => void>(hashesAtOnce, maxWaitingHashes),
    rejected: (limit: string, client: string) => rejectedClients.note(limit, client),
  }
}
