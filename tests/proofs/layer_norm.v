(* layer_norm.v - LN: a row of D features; γ changes along the row. *)

Require Import base batch_norm.

(* LN.5: yᵢ = γᵢ x̂ᵢ + βᵢ *)
Definition ln (D : nat) (ε : R) (γ β x : nat -> R) : nat -> R :=
  affine γ β (normalized D ε x).

Section Row.
Variables (D : nat) (ε : R) (γ β x : nat -> R).
Hypothesis D_pos : (0 < D)%nat.
Hypothesis root : 0 < var D x + ε.

Notation "⟨ f ⟩" := (mean D f).
Notation μ := (mean D x).
Notation v := (var D x).
Notation r := (rstd D ε x).
Notation "x̂" := (normalized D ε x).

(* LN.6: ∑ᵢ x̂ᵢ = 0 *)
Theorem LN_6 : ∑ i < D, x̂ i = 0.
Proof. apply Sum_normalized, D_pos. Qed.

(* LN.7: ⟨x̂²⟩ = v·r² = 1 − ε·r² *)
Theorem LN_7 : ⟨fun i => x̂ i ^ 2⟩ = v * r ^ 2 /\ v * r ^ 2 = 1 - ε * r ^ 2.
Proof. exact (BN_7 D ε x root). Qed.

(* LN.10: gᵢ = ∂L/∂x̂ᵢ = dyᵢ·γᵢ *)
Theorem LN_10 L dy : gradient D L (ln D ε γ β x) dy ->
  gradient D (fun z => L (affine γ β z)) x̂ (fun i => dy i * γ i).
Proof.
  intros dL p t d P. eapply d_eq; [apply (gradient_affine D L γ β x̂ dy dL p t d P) |].
  apply Sum_ext; termwise.
Qed.

(* LN.11: ∂v/∂xᵢ = (2/D)·(xᵢ − μ) *)
Theorem LN_11 i : (i < D)%nat -> partial (var D) x i (2 / D * (x i - μ)).
Proof.
  intros H. destruct (BN_16 D x D_pos i H) as [F E]. eapply d_eq; [exact F | exact E].
Qed.

(* LN.12: ∂r/∂xᵢ = −½·r³·∂v/∂xᵢ = −(1/D)·r²·x̂ᵢ *)
Theorem LN_12 i : (i < D)%nat ->
  partial (rstd D ε) x i (- (1 / 2) * r ^ 3 * (2 / D * (x i - μ))) /\
  - (1 / 2) * r ^ 3 * (2 / D * (x i - μ)) = - (1 / D) * r ^ 2 * x̂ i.
Proof. exact (BN_17 D ε x D_pos root i). Qed.

(* LN.13: ∂x̂ⱼ/∂xᵢ = r·(δᵢⱼ − 1/D − x̂ᵢ·x̂ⱼ/D) *)
Theorem LN_13 i j : (i < D)%nat ->
  partial (fun x => normalized D ε x j) x i (r * (δ i j - 1 / D - x̂ i * x̂ j / D)).
Proof. exact (BN_18 D ε x D_pos root i j). Qed.

(* LN.14: dxᵢ = ∑ⱼ gⱼ·∂x̂ⱼ/∂xᵢ = r·(gᵢ − ⟨g⟩ − x̂ᵢ·⟨g·x̂⟩), with g of LN.10, for any loss *)
Theorem LN_14 L dy : let g := (fun i => dy i * γ i) in
  gradient D L (ln D ε γ β x) dy ->
  gradient D (fun x => L (ln D ε γ β x)) x (fun i => r * (g i - ⟨g⟩ - x̂ i * ⟨g · x̂⟩)).
Proof.
  intros g dL. exact (gradient_normalized D ε _ x g D_pos root (LN_10 L dy dL)).
Qed.

Theorem LN_14_sum g i : (i < D)%nat ->
  ∑ j < D, g j * (r * (δ i j - 1 / D - x̂ i * x̂ j / D)) = r * (g i - ⟨g⟩ - x̂ i * ⟨g · x̂⟩).
Proof.
  intros H. pose proof (BN_19_sum D ε 1 x D_pos g i H) as E. rewrite Rmult_1_l in E.
  rewrite <- E. apply Sum_ext; termwise.
Qed.

Definition ln_dx (g : nat -> R) (i : nat) : R := r * (g i - ⟨g⟩ - x̂ i * ⟨g · x̂⟩).

(* LN.15: ∑ᵢ dxᵢ = 0 *)
Theorem LN_15 g : ∑ i < D, ln_dx g i = 0.
Proof.
  rewrite <- (BN_21 D ε 1 x D_pos g). apply Sum_ext; intros; unfold ln_dx, bn_dx; ring.
Qed.

(* LN.16: ∑ᵢ dxᵢ·x̂ᵢ = D·ε·r³·⟨g·x̂⟩ *)
Theorem LN_16 g : ∑ i < D, ln_dx g i * x̂ i = D * ε * r ^ 3 * ⟨g · x̂⟩.
Proof.
  transitivity (∑ i < D, bn_dx D ε 1 x g i * x̂ i).
  - apply Sum_ext; intros; unfold ln_dx, bn_dx; ring.
  - rewrite (BN_22 D ε 1 x D_pos root). ring.
Qed.

(* RNN.13: norm(c·a) = norm(a) for c > 0, ε = 0. What scales a row, does not change it. *)
Theorem RNN_13 c i : 0 < c -> ε = 0 -> normalized D ε (fun j => c * x j) i = x̂ i.
Proof.
  intros C E0. assert (m : mean D (fun j => c * x j) = c * μ).
  { rewrite (mean_lin2 D c 0 x x) by termwise. ring. }
  assert (s : var D (fun j => c * x j) = c ^ 2 * v).
  { unfold var. rewrite m, (Sum_lin1 D (c ^ 2) (fun i => (x i - μ) ^ 2)) by termwise.
    unfold Rdiv; ring. }
  unfold normalized, rstd. rewrite m, s, E0, !Rplus_0_r, sqrt_mult, sqrt_pow2;
    try lra; try apply pow2_ge_0; try apply var_nonneg.
  rewrite E0, Rplus_0_r in root. pose proof (sqrt_lt_R0 _ root). field. lra.
Qed.
End Row.

(* The index n of the row returns: all rows share γ and β. *)
Section Rows.
Variables (N D : nat) (ε : R) (γ β : nat -> R) (x : nat -> nat -> R).
Variables (L : (nat -> nat -> R) -> R) (dy : nat -> nat -> R).
Hypothesis dL : gradient2 N D L (fun n => ln D ε γ β (x n)) dy.
Notation "x̂" := (fun n => normalized D ε (x n)).

(* LN.8: dβᵢ = ∑ₙ dyₙᵢ *)
Theorem LN_8 : gradient D (fun β => L (fun n => ln D ε γ β (x n))) β (fun i => ∑ n < N, dy n i).
Proof.
  intros p t d [E F]. eapply d_eq; [apply (dL _ _ (fun n i => d i)) |].
  - split; [rewrite E; reflexivity |]. intros n i. unfold ln, affine. eapply d_eq; [rate | ring].
  - rewrite Sum_swap. apply Sum_ext; intros i. apply Sum_scal.
Qed.

(* LN.9: dγᵢ = ∑ₙ dyₙᵢ·x̂ₙᵢ *)
Theorem LN_9 : gradient D (fun γ => L (fun n => ln D ε γ β (x n))) γ
  (fun i => ∑ n < N, dy n i * x̂ n i).
Proof.
  intros p t d [E F]. eapply d_eq; [apply (dL _ _ (fun n i => d i * x̂ n i)) |].
  - split; [rewrite E; reflexivity |]. intros n i. unfold ln, affine. eapply d_eq; [rate | ring].
  - rewrite Sum_swap. apply Sum_ext; intros i. rewrite <- Sum_scal. apply Sum_ext; termwise.
Qed.
End Rows.

(* The variant of LN.17: D − 1, and ε beside the root. *)
Section Beside.
Variables (D : nat) (ε : R) (x : nat -> R).
Hypothesis D_two : (1 < D)%nat.
Notation "⟨ f ⟩" := (mean D f).
Notation μ := (mean D x).

(* s, and x̂ᵢ *)
Definition std (x : nat -> R) : R := sqrt ((∑ j < D, (x j - mean D x) ^ 2) / (D - 1)).
Definition beside (x : nat -> R) (i : nat) : R := (x i - mean D x) / (std x + ε).

Notation s := (std x).
Notation r := (1 / (s + ε)).
Notation κ := (D / ((D - 1) * r * s)).
Notation "x̂" := (beside x).
Hypothesis s_pos : 0 < s.
Hypothesis sum_pos : 0 < s + ε.

Let D_one : 0 < D - 1.
Proof. pose proof (lt_INR 1 D D_two). simpl in *. lra. Qed.

(* LN.17: x̂ᵢ = (xᵢ − μ)/(s + ε), s = √(∑ⱼ (xⱼ − μ)²/(D − 1)): so s² is v·D/(D − 1), and the κ of
   LN.18 is D/(D − 1)/(r·s). *)
Theorem LN_17 : s ^ 2 = var D x * D / (D - 1) /\ κ * (r * s) = D / (D - 1).
Proof.
  assert (D_ne0 : INR D <> 0) by lra. split; [| field; lra].
  unfold std. rewrite <- Rsqr_pow2, Rsqr_sqrt.
  - unfold var. field. lra.
  - apply Rlt_le, Rdiv_lt_0_compat; [| exact D_one].
    destruct (Rle_lt_dec (∑ j < D, (x j - μ) ^ 2) 0) as [Z | Z]; [| exact Z].
    exfalso. revert s_pos. unfold std.
    replace (∑ j < D, (x j - μ) ^ 2) with 0; [unfold Rdiv; rewrite Rmult_0_l, sqrt_0; lra |].
    apply Rle_antisym; [apply Sum_nonneg; intros; apply pow2_ge_0 | exact Z].
Qed.

(* LN.18: dxᵢ = r·(gᵢ − ⟨g⟩ − κ·x̂ᵢ·⟨g·x̂⟩), κ = D/((D − 1)·r·s) *)
Theorem LN_18 L g : gradient D L x̂ g ->
  gradient D (fun x => L (beside x)) x (fun i => r * (g i - ⟨g⟩ - κ * x̂ i * ⟨g · x̂⟩)).
Proof.
  assert (P0 : (0 < D)%nat) by lia. assert (D_ne0 : INR D <> 0) by lra.
  apply (chain D D L beside x (fun d i => r * (d i - ⟨d⟩ - κ * x̂ i * ⟨x̂ · d⟩))).
  - intros p t d P. pose proof (along_mean D x d p t P) as Dm.
    pose proof (along_var D x d p t P0 P) as Dv. destruct LN_17 as [S2 _].
    assert (W : 0 < var D x * D / (D - 1)) by (rewrite <- S2; nra).
    assert (Is : forall y, std y = sqrt (var D y * D / (D - 1))).
    { intros y. unfold std, var. f_equal. field. split; lra. }
    destruct P as [E F].
    assert (Ds : is_derive (fun s => std (p s)) t (D / ((D - 1) * s) * ⟨(fun i => x i - μ) · d⟩)).
    { apply (is_derive_ext (fun s => sqrt ((D / (D - 1)) * var D (p s)))).
      { intros; rewrite Is. f_equal. unfold Rdiv; ring. }
      assert (G : D / (D - 1) * var D (p t) = var D x * D / (D - 1)) by (rewrite E; field; lra).
      eapply d_eq; [apply d_sqrt; [rate | rewrite G; exact W] |].
      cbv beta. rewrite G, <- Is, (mean_is D (fun i => (x i - μ) * d i)). field.
      repeat split; lra. }
    split; [rewrite E; reflexivity |]. intros i. unfold beside at 1.
    eapply d_eq; [apply d_div; [rate | rate |] |]; cbv beta; rewrite E; [lra |].
    rewrite (mean_lin2 D (1 / (s + ε)) 0 ((fun i => x i - μ) · d) d (x̂ · d))
      by (intros; unfold beside; field; lra).
    unfold beside. field. repeat split; lra.
  - intros d. apply (centred_adjoint D r κ x̂ g d).
Qed.
End Beside.
