import type { Worker } from 'node:cluster'
import {
  type Answers,
  answerTo,
  type Processes,
  type ProcessState,
  type Question,
  type Reports,
} from '../admin/processes.ts'
import { reason } from '../core/errors.ts'
import { merged } from '../observe/exposition.ts'
import type { Family } from '../observe/metrics.ts'

/**
 * How long a worker may take to show that it answers at all, in ms; then it is passed over, or what
 * it said last is taken.
 */
const reportLimitMs = 1_000
/**
 * How long one that answers may take for what was asked, in ms: to end a session asks Redis and the
 * provider.
 */
const answerLimitMs = 60_000
/**
 * What is sent to one that hangs stays here until it goes on: after so many questions it is asked
 * no more until it is heard.
 */
const mostUnheard = 1_000

/** What the process above the workers and they say to one another. */
interface Asked {
  readonly kind: 'asked'
  readonly number: number
  readonly question: Question
  readonly given: readonly unknown[]
}
type Answered = { readonly kind: 'answered'; readonly number: number } & Outcome
type Outcome = { readonly answer: unknown } | { readonly fault: string }

/**
 * In the process above the workers: asks them. None that hangs keeps the others from being heard.
 */
export class WorkerAnswers implements Processes {
  /** What each has counted, as far as it said. */
  readonly #latest = new Map<Worker, readonly Family[]>()
  /** What workers that are gone had counted: a sum that falls would be taken for a restart. */
  #departed: readonly Family[] = []
  readonly #waiting = new Map<number, { readonly worker: Worker; readonly done: (outcome: Outcome) => void }>()
  /** How many questions each has been sent since it said anything. */
  readonly #unheard = new Map<Worker, number>()
  #number = 0
  readonly #above: () => readonly Family[]

  /** @param above what this process itself has counted: it is not among those that are asked */
  constructor(above: () => readonly Family[]) {
    this.#above = above
  }

  attach(worker: Worker): void {
    this.#latest.set(worker, [])
    this.#unheard.set(worker, 0)
    worker.on('message', (message: Answered) => {
      if (this.#unheard.has(worker)) this.#unheard.set(worker, 0)
      if (message.kind === 'answered') this.#waiting.get(message.number)?.done(message)
    })
    worker.once('exit', () => {
      const counted = (this.#latest.get(worker) ?? []).filter(({ kind }) => kind !== 'gauge')
      this.#departed = merged([this.#departed, counted])
      this.#latest.delete(worker)
      this.#unheard.delete(worker)
      for (const asked of [...this.#waiting.values()])
        if (asked.worker === worker) asked.done({ fault: 'the process that was asked has ended' })
    })
  }

  async metrics(): Promise<readonly Family[]> {
    await Promise.allSettled(
      this.#workers.map(async (worker) => {
        const families = await this.#ask(worker, 'metrics', [], reportLimitMs)
        if (this.#latest.has(worker)) this.#latest.set(worker, families as readonly Family[])
      }),
    )
    return merged([...this.#latest.values(), this.#departed, this.#above()])
  }

  async states(): Promise<Reports<ProcessState>> {
    const workers = this.#workers
    const states = await Promise.allSettled(workers.map((worker) => this.#ask(worker, 'state', [], reportLimitMs)))
    return {
      reports: states.flatMap((state) => (state.status === 'fulfilled' ? [state.value as ProcessState] : [])),
      silent: workers.flatMap(({ process }, at) => (states[at]?.status === 'rejected' ? [process.pid ?? 0] : [])),
    }
  }

  ask<Q extends Question>(question: Q, ...given: Parameters<Answers[Q]>): ReturnType<Answers[Q]> {
    const answer = this.#oneThatAnswers().then((worker) => this.#ask(worker, question, given, answerLimitMs))
    return answer as ReturnType<Answers[Q]>
  }

  get #workers(): readonly Worker[] {
    return [...this.#latest.keys()]
  }

  async #oneThatAnswers(): Promise<Worker> {
    const answering = this.#workers.map((worker) => this.#ask(worker, 'live', [], reportLimitMs).then(() => worker))
    return Promise.any(answering).catch(({ errors: [cause] }: AggregateError) => {
      throw new Error('none of the processes that serve answers', { cause })
    })
  }

  #ask(worker: Worker, question: Question, given: readonly unknown[], limitMs: number): Promise<unknown> {
    const unheard = this.#unheard.get(worker) ?? 0
    if (unheard >= mostUnheard) return Promise.reject(new Error('it has not answered for long'))
    const number = ++this.#number
    return new Promise((resolve, reject) => {
      const done = (outcome: Outcome) => {
        clearTimeout(limit)
        this.#waiting.delete(number)
        if ('fault' in outcome) reject(new Error(outcome.fault))
        else resolve(outcome.answer)
      }
      const limit = setTimeout(() => done({ fault: `no answer within ${limitMs} ms` }), limitMs)
      this.#waiting.set(number, { worker, done })
      // It may be gone just now.
      if (!worker.isConnected()) return
      this.#unheard.set(worker, unheard + 1)
      worker.send({ kind: 'asked', number, question, given } satisfies Asked, () => {})
    })
  }
}

/** In a worker: answers what the process above it asks. */
export function answerAbove(answers: Answers): void {
  process.on('message', (message: Asked) => {
    if (message.kind !== 'asked') return
    const { number, question, given } = message
    const tell = (outcome: Outcome) => process.send?.({ kind: 'answered', number, ...outcome } satisfies Answered)
    void answerTo(answers, question, given as Parameters<Answers[Question]>).then(
      (answer) => tell({ answer }),
      (error: unknown) => tell({ fault: reason(error) }),
    )
  })
}
