/** The days of the week, as the configuration names them. */
export const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const

export type Weekday = (typeof weekdays)[number]

export interface TimeWindowOptions {
  readonly days: readonly Weekday[]
  /** `HH:MM` */
  readonly from: string
  /** `HH:MM`, or `24:00` for the end of the day. On the next day unless it is later than `from`. */
  readonly to: string
  /** The name of a time zone, such as `Europe/Berlin`. */
  readonly zone: string
}

/** The same hours on certain days of the week, in a time zone. */
export class TimeWindow {
  readonly text: string
  readonly options: TimeWindowOptions
  readonly #days: ReadonlySet<number>
  readonly #from: number
  readonly #to: number
  readonly #format: Intl.DateTimeFormat

  /** @throws {RangeError} the time zone is unknown */
  constructor(options: TimeWindowOptions) {
    const { days, from, to, zone } = options
    this.options = options
    this.text = `${days.length === weekdays.length ? '' : `${days.join(', ')} `}${from} to ${to} (${zone})`
    this.#days = new Set(days.map((day) => weekdays.indexOf(day)))
    this.#from = minutesOf(from)
    this.#to = minutesOf(to)
    this.#format = new Intl.DateTimeFormat('en-GB', {
      timeZone: zone,
      weekday: 'short',
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
    })
  }

  /**
   * Whether a time lies in the window. `from` belongs to it, and `to` does not. A window that ends
   * on the next day belongs to the day on which it begins.
   * @param time in ms since the epoch
   */
  has(time: number): boolean {
    const parts = Object.fromEntries(this.#format.formatToParts(time).map(({ type, value }) => [type, value]))
    const day = weekdays.indexOf((parts['weekday'] ?? '').toLowerCase() as Weekday)
    const minutes = Number(parts['hour']) * 60 + Number(parts['minute'])
    const isFrom = this.#days.has(day)
    if (this.#from < this.#to) return isFrom && minutes >= this.#from && minutes < this.#to
    const isFromYesterday = this.#days.has((day + weekdays.length - 1) % weekdays.length)
    return (isFrom && minutes >= this.#from) || (isFromYesterday && minutes < this.#to)
  }
}

function minutesOf(time: string): number {
  const [hours, minutes] = time.split(':').map(Number)
  return (hours ?? 0) * 60 + (minutes ?? 0)
}
