/* Functions that a user's program may well have, of names that the core has, too. */
int model_open(void);
int kern_linear(void);
int base_pool_run(void);

int model_open(void)
{
    return 1;
}

int kern_linear(void)
{
    return 2;
}

int base_pool_run(void)
{
    return 3;
}
