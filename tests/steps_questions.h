/* steps_questions.h - the steps of docs/11_questions.md, executed. */
#ifndef STEPS_QUESTIONS_H
#define STEPS_QUESTIONS_H

#include "derive_tools.h"

static void steps_questions(void)
{
}
#endif
