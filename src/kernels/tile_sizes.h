/* Height and width of the register tile, by instruction set. */
#ifndef LS_KERNELS_TILE_SIZES_H
#define LS_KERNELS_TILE_SIZES_H

enum {
    LS_TILE_ROWS_ref = 4,
    LS_TILE_COLUMNS_ref = 4,
    LS_TILE_ROWS_avx2 = 6, /* 12 sums, 2 of B, 1 of A: 15 of 16 registers */
    LS_TILE_COLUMNS_avx2 = 16,
    LS_TILE_ROWS_avx512 = 14, /* 28 sums, 2 of B, 1 of A: 31 of 32 registers */
    LS_TILE_COLUMNS_avx512 = 32,
};

#endif
