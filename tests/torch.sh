# torch.sh - to be sourced from the root of the project: $python is a Python that has PyTorch and
# NumPy, or empty.
python=
for p in /usr/bin/python3 python3; do
    if "$p" -c 'import numpy, torch' 2>/dev/null; then
        python=$p
        break
    fi
done
