/** The most parts of one content, because each takes memory besides its content. */
const maxParts = 1024

/** Adds a part to content that is held. Many small parts become one. */
export function addPart(parts: Buffer[], part: Buffer): void {
  parts.push(part)
  if (parts.length > maxParts) parts.splice(0, parts.length, Buffer.concat(parts))
}
