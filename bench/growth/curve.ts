// How a cost grows with a size.

/** Of some rounds: the median, and the values that half of them lie between. */
export interface Middle {
  readonly median: number
  readonly low: number
  readonly high: number
}

export interface Point {
  /** The size. */
  readonly x: number
  readonly y: Middle
}

/** `flat`, or how the part grows that is above the smallest point. `unclear`: within the noise. */
export type Verdict = 'flat' | 'unclear' | 'slower than linear' | 'linear' | 'faster than linear'

export interface Growth {
  /** The whole cost at the largest size, divided by that at the smallest. */
  readonly ratio: number
  /** The whole cost for ten times the size, divided by that before: a mean over the curve. */
  readonly perDecade: number
  /** What each one more adds to the cost, between the two largest sizes. */
  readonly slope: number
  readonly verdict: Verdict
}

/** A curve is flat if it rises by less than this. */
const flatBelow = 1.25
/** The exponents between which a part grows linearly. */
const linear = { from: 0.7, to: 1.3 }

/**
 * Three sizes are enough. The exponent is that of the part above the smallest point, between the
 * two largest points: a constant part would hide how the rest grows.
 */
export function growthOf(points: readonly Point[]): Growth {
  const [first, last] = [points[0], points.at(-1)] as [Point, Point]
  const before = points.at(-2) as Point
  const ratio = last.y.median / first.y.median
  const decades = Math.log10(last.x / first.x)
  const slope = (last.y.median - before.y.median) / (last.x - before.x)
  const growth = { ratio, perDecade: ratio ** (1 / decades), slope }
  if (ratio < flatBelow) return { ...growth, verdict: 'flat' }
  if (last.y.low <= first.y.high) return { ...growth, verdict: 'unclear' }
  const above = (point: Point) => Math.max(point.y.median - first.y.median, 0)
  const beyond = (last.x - first.x) / (before.x - first.x)
  // A rise that only the last point shows counts as linear: within the noise, it may begin earlier.
  const isNoise = points.length < 3 || above(before) <= before.y.high - before.y.low
  const exponent = isNoise ? 1 : Math.log(above(last) / above(before)) / Math.log(beyond)
  if (exponent < linear.from) return { ...growth, verdict: 'slower than linear' }
  return { ...growth, verdict: exponent > linear.to ? 'faster than linear' : 'linear' }
}

export function middleOf(values: readonly number[]): Middle {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (part: number) => Number((sorted[Math.round((sorted.length - 1) * part)] ?? NaN).toPrecision(4))
  return { median: at(0.5), low: at(0.25), high: at(0.75) }
}
