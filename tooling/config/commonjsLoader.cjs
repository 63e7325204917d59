'use strict'
// Loads the ES modules of this package in a module system whose `require` cannot, such as Jest's, where the package
// then exists in this form alone. Everything is evaluated in the realm of the caller. The build converts each file once
// to see that the result is CommonJS.
const { readFileSync } = require('node:fs')
const { Module } = require('node:module')
const { dirname, join } = require('node:path')
const { pathToFileURL } = require('node:url')

const loaded = new Map()

/** What a module of the package exports. @param error - why `require` did not load it */
module.exports = (requirer, name, error) => {
  // Node.js that was told not to `require` ES modules could still import them, and there would be two copies of all
  // state.
  const isRefused = error?.name === 'SyntaxError' || error?.code === 'ERR_REQUIRE_ESM'
  if (!isRefused || requirer instanceof Module) throw error
  const { filename, require: requireOther } = requirer
  const load = (file) => {
    const known = loaded.get(file)
    if (known !== undefined) return known
    const exported = Object.defineProperty({}, '__esModule', { value: true })
    loaded.set(file, exported)
    const find = (specifier) => (specifier[0] === '.' ? load(join(dirname(file), specifier)) : requireOther(specifier))
    // biome-ignore lint/security/noGlobalEval: a module system of its own, for this package's own files
    const run = globalThis.eval(`${convert(readFileSync(file, 'utf8'))}\n//# sourceURL=${file}`)
    try {
      run(exported, define, find, pathToFileURL(file).href, file)
    } catch (failure) {
      loaded.delete(file) // as `require` does: the next attempt has the same error, not half a module
      throw failure
    }
    return exported
  }
  return load(join(dirname(filename), name))
}

function define(exported, getters) {
  for (const name of Object.keys(getters)) {
    if (!Object.hasOwn(exported, name)) Object.defineProperty(exported, name, { enumerable: true, get: getters[name] })
  }
}

/**
 * A bundle of this package as the text of a function. Its imports and exports have a line each; imports come first, as
 * in an ES module.
 */
function convert(code) {
  const [getters, imports] = [[], []]
  const parts = (list) => list.split(',').flatMap((each) => (each.trim() === '' ? [] : [each.trim().split(' as ')]))
  const take = (pattern, statement) => {
    code = code.replace(pattern, (_, ...groups) => {
      imports.push(statement(...groups))
      return ''
    })
  }
  code = code.replace(/^export ?\{([^}]*)\};?$/gm, (_, list) => {
    for (const [local, name = local] of parts(list)) getters.push(`${name}:()=>${local}`)
    return ''
  })
  take(/^import ?\{([^}]*)\} ?from ?"([^"]*)";?$/gm, (list, from) => {
    const names = parts(list).map((each) => each.join(':'))
    return `const{${names.join()}}=$require("${from}");`
  })
  take(/^import ?\* ?as ([\w$]+) ?from ?"([^"]*)";?$/gm, (name, from) => `const ${name}=$require("${from}");`)
  take(/^import ?"([^"]*)";?$/gm, (from) => `$require("${from}");`)
  take(/^export ?\{([^}]*)\} ?from ?"([^"]*)";?$/gm, (list, from) => {
    const given = parts(list).map(([local, name = local]) => `${name}:()=>$from.${local}`)
    return `{const $from=$require("${from}");$define($exports,{${given.join()}})}`
  })
  take(/^export ?\* ?from ?"([^"]*)";?$/gm, (from) => {
    const given = 'Object.fromEntries(Object.keys($from).map(($name)=>[$name,()=>$from[$name]]))'
    return `{const $from=$require("${from}");$define($exports,${given})}`
  })
  const body = code
    .replaceAll(/(?<![.\w$])import\(([`"][^`"]*[`"])\)/g, 'Promise.resolve().then(()=>$require($1))')
    .replaceAll('import.meta.url', '$url')
  const head = `"use strict";$define($exports,{${getters.join()}});${imports.join('')}`
  return `(function($exports,$define,$require,$url,__filename){${head}${body}\n})`
}

module.exports.convert = convert
