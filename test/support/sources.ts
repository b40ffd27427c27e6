export const isCode = (path: string): boolean => /\.[cm]?[jt]sx?$/.test(path)

/**
 * What a source imports, of whichever kind: `import`, `export … from`, `import()`,
 * `import('…').Type`, `require()`. `undefined` stands for an import whose module is computed.
 */
export function importsOf(source: string): (string | undefined)[] {
  const { skeleton, texts } = skeletonOf(source)
  const found: (string | undefined)[] = []
  for (const [, index] of skeleton.matchAll(/(?<![\w$.])(?:from|import|(?:import|require)\s*\()\s*"(\d+)"/g))
    found.push(texts[Number(index)])
  for (const _ of skeleton.matchAll(/(?<![\w$.])(?:import|require)\s*\((?!\s*"\d+"\s*[,)])/g)) found.push(undefined)
  return found
}

/**
 * Code without comments and regular expressions, and with the number of each text in place of it.
 */
export function skeletonOf(source: string): { skeleton: string; texts: string[] } {
  const texts: string[] = []
  const keep = (text: string) => `"${texts.push(text) - 1}"`
  const token =
    /\/\/[^\n]*|\/\*[^]*?\*\/|'(?:[^'\\\n]|\\[^])*'|"(?:[^"\\\n]|\\[^])*"|`|\/(?![/*])(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*|[^]/y
  const depths: number[] = []
  let skeleton = ''
  let braces = 0
  let at = 0

  /** The text of a template up to its end or to the next `${`. */
  const template = () => {
    const part = /(?:[^`\\$]|\\[^]|\$(?!\{))*(`|\$\{|$)/y
    part.lastIndex = at
    const [whole = '', end = ''] = part.exec(source) ?? []
    at += whole.length
    if (end === '${') {
      depths.push(braces)
      skeleton += '"" + ('
    } else skeleton += keep(whole.slice(0, whole.length - end.length))
  }

  while (at < source.length) {
    token.lastIndex = at
    let [text = ''] = token.exec(source) ?? []
    const isComment = text.startsWith('//') || text.startsWith('/*')
    const isPattern = text.length > 1 && text.startsWith('/') && !isComment
    // After a value a slash divides.
    if (
      isPattern &&
      /[\w$)\]"]\s*$/.test(skeleton) &&
      !/\b(?:return|typeof|case|in|of|void|yield|await)\s*$/.test(skeleton)
    )
      text = '/'
    at += text.length
    if (isComment) skeleton += ' '
    else if (text.length > 1 && text.startsWith('/')) skeleton += '/./'
    else if (text.startsWith("'") || text.startsWith('"')) skeleton += keep(text.slice(1, -1))
    else if (text === '`') template()
    else if (text === '}' && depths.at(-1) === braces) {
      depths.pop()
      skeleton += ') + '
      template()
    } else {
      if (text === '{') braces += 1
      if (text === '}') braces -= 1
      skeleton += text
    }
  }
  return { skeleton, texts }
}
