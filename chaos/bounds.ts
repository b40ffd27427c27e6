/**
 * Milliseconds that the checker allows, in one place. docs/reliability.md promises each of them: a
 * test compares both.
 */
export const bounds = {
  /**
   * All processes that receive notices have confirmed an ending whose 200 came within this time.
   */
  confirmations: 250,
  /**
   * A replica that hangs, or has lost the store, serves from memory for this time, and the grace.
   */
  proof: 1_500,
  /** A stream closes, and its browser notices, after its session has ended. */
  streamAfterEnding: 1_000,
  streamAfterTimeout: 5_000,
  streamWithoutStore: 300_000,
  /** Applications send a message on a stream each 500 ms. */
  streamSilence: 5_000,
  /** A session stays locked after the replica that refreshed it was killed. */
  lease: 5_000,
  /** A replica repeats an order that the store did not accept. */
  repeatedOrder: 30_000,
  /** A sign-in that begins right after its logout is still rejected. */
  roundTrip: 100,
  /** The part of `idle_timeout` by which a session may end earlier. */
  idleEarlier: 0.1,
  /** Between the clocks of two replicas, each of which a fault has set up to 5 s off. */
  clocks: 10_000,
  /** The last writes that a failover or a restart of the store may lose. */
  lostWrites: 1_000,
  /** From the end of a session at the provider until the provider sends the Logout Token. */
  order: 1_000,
  /** A replica tells the others of an ending that it has learned of. */
  ending: 200,
  /** A response of the token endpoint that takes longer may come too late for the gateway. */
  refresh: 1_000,
  /**
   * From the end of a session until its application is told. The process that tells it may die, and
   * the application may be away at first.
   */
  logoutCall: 45_000,
  /** The first attempts of a logout call. */
  firstLogoutCalls: 10_000,
  /**
   * After the registration of a key, a request without a proof of it is still accepted. Tokens of
   * the provider are accepted as long after their end: `provider.clock_tolerance`.
   */
  tolerance: 30_000,
  /** A process does not ask again for this time after the provider refused to exchange a token. */
  refusedExchange: 10_000,
  /** A response, without what was late on its way. */
  response: 2_000,
  /** From a response of the provider until the store has what it changes. */
  stored: 1_000,
  /** Before a replica was disturbed, a request may have begun what it leaves undone. */
  leftUndone: 1_000,
  /** Redis, the provider or an application that is late for less time makes no request fail. */
  patience: 1_200,
  /**
   * From the end of a fault, or the last connection that it touched, until nothing fails because of
   * it.
   */
  recovery: {
    replica: 1_000,
    clients: 500,
    store: 2_500,
    provider: 1_500,
    application: 1_000,
    decision: 500,
    clock: 1_000,
  },
  /** What may remain between the first and the last calm sample. */
  leak: { memory: 48 * 1024 ** 2, used: 12 * 1024 ** 2, files: 8, keys: 8 },
  /**
   * What a new process may use more than the one before it. One that has run for minutes has more
   * compiled code, and keeps free memory.
   */
  leakOfNew: { memory: 96 * 1024 ** 2, used: 12 * 1024 ** 2, files: 32, keys: 8 },
} as const
