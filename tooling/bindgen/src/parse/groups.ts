// Documentation groups: the `\defgroup` of the header that contains a function. Only the names are used.

/** Maps each function to the innermost documentation group around its declaration. */
export function readGroups(header: string): Map<string, string> {
  const groups = new Map<string, string>()
  const stack: string[] = []
  let announced: string | undefined
  const tokens =
    /[\\@](?:defgroup|addtogroup)\s+(\w+)|@([{}])|\b(?:CUDAAPI|CUDARTAPI|CUDARTAPI_CDECL|DECLDIR)\s+(?:char ?\*\s*)?(\w+)\s*\(/g
  for (const [, group, brace, declared] of header.matchAll(tokens)) {
    if (group) announced = group
    else if (brace === '{') {
      stack.push(announced ?? stack.at(-1) ?? '')
      announced = undefined
    } else if (brace === '}') stack.pop()
    else if (declared && stack.length > 0 && !groups.has(declared)) groups.set(declared, stack.at(-1) as string)
  }
  return groups
}
