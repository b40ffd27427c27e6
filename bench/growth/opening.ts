// A process that opens streams and keeps them open. The parent process sends the order, and gets
// `open` when all are open.

export interface StreamsOrder {
  /** The replicas, which take turns. */
  readonly ports: readonly number[]
  readonly count: number
  /** The sessions, which take turns. */
  readonly cookies: readonly string[]
}

/** @param open resolves when all streams of the order are open */
export function opening(open: (order: StreamsOrder) => Promise<void>): void {
  process.on('message', (order: StreamsOrder) => {
    open(order).then(
      () => process.send?.('open'),
      (error: unknown) => {
        console.error(error)
        process.exit(1)
      },
    )
  })
}
