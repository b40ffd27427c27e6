/** The number of slots in a Redis Cluster. */
export const slotCount = 16_384

/**
 * The slot of a key, or of a hash tag alone: Redis Cluster specification, "Key distribution model"
 * and "Hash tags".
 */
export function slotOf(key: string): number {
  const tag = /\{([^}]+)\}/.exec(key)?.[1] ?? key
  let crc = 0
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff
  }
  return crc % slotCount
}

const tags = new Map<number, string>()

/** The hash tag for a slot: the smallest number that lies in the slot. */
export function tagIn(slot: number): string {
  let tag = tags.get(slot)
  for (let n = 0; tag === undefined; n++) if (slotOf(String(n)) === slot) tag = String(n)
  tags.set(slot, tag)
  return tag
}
