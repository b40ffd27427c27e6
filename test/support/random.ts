/** Pseudo-random choices: the same seed makes the same ones. */
export interface Random {
  /** An integer from 0 to below the limit. */
  below(limit: number): number
  between(from: number, to: number): number
  /** True with this probability. */
  chance(probability: number): boolean
  pick<T>(list: readonly [T, ...T[]] | readonly T[]): T
  /** A choice by weight. */
  weighted<K extends string>(weights: Readonly<Partial<Record<K, number>>>): K
}

/** Returns a generator of pseudo-random numbers from 0 to below 1 (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export function seeded(seed: number): Random {
  // Seeds that follow each other would make similar choices.
  const next = randomNumbers(Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0)
  const random: Random = {
    below: (limit) => Math.floor(next() * limit),
    between: (from, to) => from + Math.floor(next() * (to - from + 1)),
    chance: (probability) => next() < probability,
    pick: <T>(list: readonly T[]) => list[random.below(list.length)] as T,
    weighted: <K extends string>(weights: Readonly<Partial<Record<K, number>>>) => {
      const rows = Object.entries(weights) as [K, number][]
      let left = next() * rows.reduce((sum, [, weight]) => sum + weight, 0)
      return (rows.find(([, weight]) => (left -= weight) < 0) ?? (rows[0] as [K, number]))[0]
    },
  }
  return random
}
