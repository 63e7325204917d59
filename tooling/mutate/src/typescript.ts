import ts from 'typescript-api'
import { type Mutant, operators } from './mutant.js'

/** Methods and functions with the one that replaces each. */
const names: Readonly<Record<string, string>> = {
  ...{ some: 'every', every: 'some', min: 'max', max: 'min', floor: 'ceil', ceil: 'floor' },
  ...{ find: 'findLast', findLast: 'find', push: 'unshift', finally: 'then' },
}

/** Operators whose right side a programmer can forget: offsets, high words, flags, fallbacks, conditions. */
const terms = new Set(['+', '-', '|', '&', '*', '<<', '??', '&&', '||'])

/**
 * Returns every fault that can be made in a TypeScript source. Types, imports and error messages stay as they are. Half
 * of the kinds are omissions, because tests notice them least: of a wait, an argument, a term, a property or a result.
 */
export function typescriptMutants(file: string, text: string): Mutant[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const found: Mutant[] = []
  const change = (kind: string, start: number, end: number, replacement: string): void => {
    found.push({ kind, file, start, end, replacement })
  }
  const replace = (kind: string, node: ts.Node, replacement: string): void =>
    change(kind, node.getStart(source), node.getEnd(), replacement)
  /** Removes one element of a list, with the comma after it or before it. */
  const leaveOut = (kind: string, list: ts.NodeArray<ts.Node>, index: number): void => {
    const [node, next, before] = [list[index] as ts.Node, list[index + 1], list[index - 1]]
    if (next !== undefined) change(kind, node.getStart(source), next.getStart(source), '')
    else change(kind, before?.getEnd() ?? node.getStart(source), node.getEnd(), '')
  }
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return
    if (ts.isNewExpression(node) && /Error$/.test(node.expression.getText(source))) return
    if (ts.isBinaryExpression(node)) {
      const operator = node.operatorToken.getText(source)
      const other = operators[operator]
      const isText = [node.left, node.right].some((side) => ts.isStringLiteral(side) || ts.isTemplateExpression(side))
      const [left, right] = [node.left.getText(source), node.right.getText(source)]
      if (other !== undefined && !(isText && other === '-')) {
        const isAssignment = /[^=!<>]=$/.test(operator)
        replace('operator', node, isAssignment ? `${left} ${other} ${right}` : `((${left}) ${other} (${right}))`)
      }
      if (terms.has(operator) && !isText) replace('term left out', node, `(${left})`)
    } else if (ts.isIfStatement(node) || ts.isWhileStatement(node)) {
      const { expression } = node
      replace('condition turned round', expression, `!(${expression.getText(source)})`)
      replace('condition never true', expression, 'false')
    } else if (ts.isConditionalExpression(node)) {
      replace('always one branch', node, `(${node.whenTrue.getText(source)})`)
      replace('always one branch', node, `(${node.whenFalse.getText(source)})`)
    } else if (node.kind === ts.SyntaxKind.TrueKeyword) replace('boolean', node, 'false')
    else if (node.kind === ts.SyntaxKind.FalseKeyword) replace('boolean', node, 'true')
    else if (ts.isNumericLiteral(node)) replace('number', node, `${Number(node.text) + 1}`)
    else if (ts.isBigIntLiteral(node)) replace('number', node, `${BigInt(node.text.slice(0, -1)) + 1n}n`)
    else if (ts.isPrefixUnaryExpression(node) && /[!-]/.test(source.text[node.getStart(source)] as string)) {
      replace('operator', node, node.operand.getText(source))
    } else if (ts.isPropertyAccessExpression(node) && Object.hasOwn(names, node.name.text)) {
      replace('another function', node.name, names[node.name.text] as string)
    } else if (ts.isExpressionStatement(node) && canGo(node.expression)) {
      replace(ts.isAwaitExpression(node.expression) ? 'wait left out' : 'statement left out', node, ';')
    } else if (ts.isObjectLiteralExpression(node)) {
      for (const index of node.properties.keys()) leaveOut('property left out', node.properties, index)
    } else if (ts.isArrayLiteralExpression(node) && !isTarget(node)) {
      for (const index of node.elements.keys()) leaveOut('element left out', node.elements, index)
    } else if (ts.isArrowFunction(node) && ts.isCallExpression(node.body)) {
      replace('call left out', node.body, 'undefined')
    }
    if ((ts.isCallExpression(node) || ts.isNewExpression(node)) && (node.arguments?.length ?? 0) > 0) {
      const list = node.arguments as ts.NodeArray<ts.Expression>
      leaveOut('argument left out', list, list.length - 1)
      for (const each of list)
        if (/offset|start|high|index|first/i.test(each.getText(source))) replace('argument zero', each, '0')
    }
    if (ts.isAwaitExpression(node)) replace('wait left out', node, `(${node.expression.getText(source)})`)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

/** Returns true if the literal is the target of a destructuring assignment. */
const isTarget = (node: ts.ArrayLiteralExpression): boolean =>
  (ts.isBinaryExpression(node.parent) && node.parent.left === node) ||
  (ts.isForOfStatement(node.parent) && node.parent.initializer === node)

function canGo(expression: ts.Expression): boolean {
  const inner = ts.isAwaitExpression(expression) || ts.isVoidExpression(expression) ? expression.expression : expression
  if (ts.isCallExpression(inner)) return inner.expression.kind !== ts.SyntaxKind.SuperKeyword
  return ts.isDeleteExpression(inner) || (ts.isBinaryExpression(inner) && /=$/.test(inner.operatorToken.getText()))
}
