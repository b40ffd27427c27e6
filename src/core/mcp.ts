/**
 * The revision of the Model Context Protocol that makes clients repeat the method and the name in
 * header fields, and makes servers reject a request whose content differs from them.
 */
export const mcpRevision = '2026-07-28'

/** The method with which a client calls a tool. */
export const toolCall = 'tools/call'
