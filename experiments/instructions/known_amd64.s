#include "textflag.h"

// func countdown(n int64)
TEXT ·countdown(SB), NOSPLIT, $0-8
	MOVQ n+0(FP), AX
again:
	DECQ AX
	JNZ  again
	RET
