/**
 * The error codes of HTTP/2 that the gateway reads and sends (RFC 9113 §7). Not those of
 * `node:http2`, because loading that module takes memory, which most gateways do not need.
 */
export const errorCodes = {
  noError: 0x0,
  protocolError: 0x1,
  flowControlError: 0x3,
  frameSizeError: 0x6,
  refusedStream: 0x7,
  cancel: 0x8,
  compressionError: 0x9,
  enhanceYourCalm: 0xb,
} as const

/** The flag of a frame that ends its stream (RFC 9113 §6.1). */
export const endStreamFlag = 0x1
