import { nvshmemx_cmp_type_t, nvshmemx_signal_op_t } from '@shoal/nvshmem-sys'

/** Effect of a signal operation: sets the signal to the value, or adds the value. */
export type SignalOp = 'set' | 'add'

export const signalOps: { readonly [O in SignalOp]: nvshmemx_signal_op_t } = {
  set: nvshmemx_signal_op_t.NVSHMEM_SIGNAL_SET,
  add: nvshmemx_signal_op_t.NVSHMEM_SIGNAL_ADD,
}

/** How to compare a variable with a value. */
export type Comparison = '==' | '!=' | '>' | '>=' | '<' | '<='

export const comparisons: { readonly [C in Comparison]: nvshmemx_cmp_type_t } = {
  '==': nvshmemx_cmp_type_t.NVSHMEM_CMP_EQ,
  '!=': nvshmemx_cmp_type_t.NVSHMEM_CMP_NE,
  '>': nvshmemx_cmp_type_t.NVSHMEM_CMP_GT,
  '>=': nvshmemx_cmp_type_t.NVSHMEM_CMP_GE,
  '<': nvshmemx_cmp_type_t.NVSHMEM_CMP_LT,
  '<=': nvshmemx_cmp_type_t.NVSHMEM_CMP_LE,
}
