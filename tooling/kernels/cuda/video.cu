// Video instructions.
#include "common.cuh"

EACH3(videoInstructions, int, int, int, int, 3, asm("vadd.s32.s32.s32.sat %0, %1, %2;" : "=r"(o[0]) : "r"(a), "r"(b));
      asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(o[1]) : "r"(a), "r"(b), "r"(c)); asm("vmax2.s32.s32.s32 %0, %1, %2, %3;" : "=r"(o[2]) : "r"(a), "r"(b), "r"(c));)
