import type { Bed } from '../bed.ts'
import type { Contender, Setting } from '../contenders/contender.ts'
import type { Plan } from '../measure.ts'
import type { Stand, StandOptions } from '../stand.ts'
import type { Facts } from '../targets.ts'

/** One question that the bench answers. */
export interface Scenario {
  /** As it is called on the command line. */
  readonly name: string
  /** What is measured, as the heading of its table. */
  readonly title: string
  /** Prints its tables, and notes what the targets are about. */
  run(bench: Bench): Promise<void>
}

/** What a scenario works with. */
export interface Bench {
  readonly bed: Bed
  readonly plan: Plan
  /** Those that take part, by name. */
  readonly contenders: ReadonlyMap<string, Contender>
  /** Starts one, with the Node.js that was asked for; it is stopped when the scenario is over. */
  stand(contender: Contender, options?: StandOptions): Promise<Stand>
  /** What contenders are started with, when it is not by `stand`. */
  readonly options: Pick<Setting, 'node'>
  print(text: string): void
  /** What was measured so far of what the targets are about. */
  readonly facts: Facts
}
