/**
 * Pauses and time limits that a test would have to wait for, in ms. Tests replace them: see
 * test/support/pauses.ts. They are no settings: nothing that the program reads changes them. A
 * constant that no test waits for stays where it is used.
 */
export const pauses = {
  /** How often the files of the configuration are checked. */
  watchFilesMs: 2_000,
  /**
   * How often a process looks whether it can take the lease for the events of a transmitter, or has
   * to check the stream.
   */
  lookForSignalsMs: 1_000,
  /** The first pause after an error of a transmitter, or after a response without a new event. */
  retrySignalsMs: 1_000,
  /**
   * How often the sessions of open streams are read. A stream ends at most this long after its
   * session.
   */
  checkStreamsMs: 5_000,
  /** How often the exchanges with an upstream are examined, to find those that last. */
  findLongExchangesMs: 1_000,
  /** How long a start or a reload waits for Redis and the provider. */
  waitForDependenciesMs: 2_000,
  /** How long an attempt to connect to Redis may take. */
  connectToStoreMs: 2_000,
  /** The longest pause between two attempts to connect to Redis. */
  reconnectToStoreMs: 2_000,
  /** How long it is proven that notices arrive, after a request for which this matters. */
  proveNoticesMs: 10_000,
  /** How often an idle process, which proves nothing, checks its connections to Redis. */
  checkIdleStoreMs: 10_000,
  /** When a trial of Redis is repeated that failed or did not come to an end. */
  tryStoreAgainMs: 2_000,
  /** How long `gatehouse doctor` waits for a connection to Redis. */
  examineStoreMs: 3_000,
  /** How long `gatehouse doctor` waits for one response, or for the addresses of a host. */
  examineMs: 5_000,
  /** How long a span waits for others that are sent with it. */
  sendSpansMs: 1_000,
  /** The first pause after spans could not be sent. */
  retrySpansMs: 1_000,
  /** The shortest pause between two looks for calls of the logout of applications that are due. */
  lookForLogoutCallsMs: 1_000,
  /** How long the administration page reads the sessions of a store at most. */
  searchSessionsMs: 2_000,
  /** The pause between two updates of an open administration page. */
  updateAdminPageMs: 2_000,
  /** How often the keys of the gateway are read while one is missing. */
  retryKeysMs: 1_000,
  /** How long a lease lasts before another process may take over from a killed one. */
  leaseMs: 5_000,
  /** The first pause after a token could not be revoked. */
  retryRevocationsMs: 1_000,
  /** The pause between two attempts to carry out endings that the store has not taken. */
  repeatEndingsMs: 1_000,
  /** The pause between two attempts to release leases of commands that were given up. */
  releaseLeasesMs: 500,
  /** How long a start waits for the file of the sessions, which another process has open. */
  lockSessionFileMs: 2_000,
  /**
   * How long the primary waits for the report of a worker. After that, it leaves the worker out, or
   * uses its last report.
   */
  workerReportsMs: 1_000,
} as const
