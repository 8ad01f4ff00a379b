/* What the files of the linking tests call each other. Each returns 0 if its result was right. */
#ifndef USER_H
#define USER_H
#ifdef __cplusplus
extern "C" {
#endif
int user_layernorm(void);
int user_batchnorm(void);
int user_float(void);
int user_double(void);
#ifdef __cplusplus
}
#endif
#endif
