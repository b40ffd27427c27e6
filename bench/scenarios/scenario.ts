import type { Bed } from '../bed.ts'
import type { Contender, Setting } from '../contenders/contender.ts'
import type { Bars, Chart } from '../growth/chart.ts'
import type { Plan } from '../rounds.ts'
import type { Stand, StandOptions } from '../stand.ts'
import type { Facts } from '../targets.ts'

/** One measurement of the bench. */
export interface Scenario {
  /** Its name on the command line, and in the markers of docs/performance.md. */
  readonly name: string
  /** The heading of its table. */
  readonly title: string
  /** Prints its tables, and records the results that the targets refer to. */
  run(bench: Bench): Promise<void>
}

/** The input of a scenario. */
export interface Bench {
  readonly bed: Bed
  readonly plan: Plan
  /** The selected contenders, by name. */
  readonly contenders: ReadonlyMap<string, Contender>
  /** Starts a contender with the selected Node.js. It stops when the scenario ends. */
  stand(contender: Contender, options?: StandOptions): Promise<Stand>
  /** The settings for contenders that a scenario starts without `stand`. */
  readonly options: Pick<Setting, 'node'>
  /** Adds a paragraph or a table to the report. */
  print(text: string): void
  /** Adds a picture to the report: with `--write`, its file takes the place of the earlier one. */
  draw(picture: Chart | Bars): void
  /** The results so far that the targets refer to. */
  readonly facts: Facts
}
