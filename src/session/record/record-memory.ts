const blockBytes = 1024 * 1024
/** A longer record has a block of its own length. In bytes. */
const maxSharedBytes = blockBytes / 16
/** How many bytes may be unused: this many, and a third of the bytes in use. */
const tolerableBytes = 3 * blockBytes

interface Block {
  readonly bytes: Buffer
  /** Where the next record begins. */
  end: number
  /** How many of the bytes belong to records that are held. */
  heldBytes: number
  /** The records that were put into it, also those that are not held any more. */
  records: HeldRecord[]
}

export class HeldRecord {
  readonly length: number
  readonly #memory: RecordMemory
  /** @internal of {@link RecordMemory} */
  block: Block | undefined
  /** @internal of {@link RecordMemory} */
  start = 0
  #holders = 1

  constructor(memory: RecordMemory, length: number) {
    this.#memory = memory
    this.length = length
  }

  /** A view of the record, until the next `put` or `release`: they may put another record there. */
  get bytes(): Buffer {
    return this.block?.bytes.subarray(this.start, this.start + this.length) ?? empty
  }

  hold(): void {
    this.#holders += 1
  }

  /** Each holder must call it once. After the last call, the record has no bytes any more. */
  release(): void {
    this.#holders -= 1
    if (this.#holders === 0) this.#memory.remove(this)
  }
}

/**
 * Memory for sealed records, in large blocks that are used again. With a buffer for each, V8 would
 * count new ones as growth, although as many are garbage, and collect all old objects after every
 * 30 MB of new records.
 */
export class RecordMemory {
  readonly #blocks = new Set<Block>()
  /** The block that records are put into. */
  #current: Block | undefined
  #spare: Block | undefined
  #heldBytes = 0
  #totalBytes = 0

  get totalBytes(): number {
    return this.#totalBytes
  }

  /** Keeps a copy of the bytes, which are not empty. */
  put(bytes: Uint8Array): HeldRecord {
    const record = new HeldRecord(this, bytes.length)
    this.#heldBytes += bytes.length
    this.#place(record, bytes)
    return record
  }

  /** @internal of {@link HeldRecord} */
  remove(record: HeldRecord): void {
    const { block, length } = record
    if (block === undefined) return
    record.block = undefined
    this.#heldBytes -= length
    block.heldBytes -= length
    if (block.heldBytes === 0 && block !== this.#current) this.#free(block)
    if (this.#totalBytes > this.#heldBytes + this.#heldBytes / 3 + tolerableBytes) this.#shrink()
  }

  #place(record: HeldRecord, bytes: Uint8Array): void {
    const block = this.#blockFor(bytes.length)
    block.bytes.set(bytes, block.end)
    record.block = block
    record.start = block.end
    block.end += bytes.length
    block.heldBytes += bytes.length
    block.records.push(record)
  }

  #blockFor(length: number): Block {
    if (length > maxSharedBytes) return this.#allocate(length)
    const current = this.#current
    if (current !== undefined && current.end + length <= blockBytes) return current
    this.#current = undefined
    if (current?.heldBytes === 0) this.#free(current)
    const next = this.#spare ?? this.#allocate(blockBytes)
    this.#spare = undefined
    this.#current = next
    return next
  }

  #allocate(length: number): Block {
    const block = { bytes: Buffer.allocUnsafeSlow(length), end: 0, heldBytes: 0, records: [] }
    this.#totalBytes += length
    this.#blocks.add(block)
    return block
  }

  /** No record in the block is held. */
  #free(block: Block): void {
    if (this.#spare !== undefined || block.bytes.length !== blockBytes) return this.#drop(block)
    block.end = 0
    block.records = []
    this.#spare = block
  }

  #drop(block: Block): void {
    this.#blocks.delete(block)
    this.#totalBytes -= block.bytes.length
  }

  /** Drops the spare block, or moves the records of the block with the most unused bytes. */
  #shrink(): void {
    if (this.#spare !== undefined) {
      this.#drop(this.#spare)
      this.#spare = undefined
      return
    }
    let emptiest: Block | undefined
    for (const block of this.#blocks) {
      if (block !== this.#current && (emptiest === undefined || unusedBytes(block) > unusedBytes(emptiest)))
        emptiest = block
    }
    if (emptiest === undefined) return
    for (const record of emptiest.records) if (record.block === emptiest) this.#place(record, record.bytes)
    this.#drop(emptiest)
  }
}

/** How many bytes of a block belong to no record that is held. */
function unusedBytes({ bytes, heldBytes }: Block): number {
  return bytes.length - heldBytes
}

const empty = Buffer.alloc(0)
